"""Makes ops.json and ops.png: Pillow's results of every operation, and the arguments that timm and torchvision choose for magnitudes.

Run with timm 1.0.31, torchvision 0.29.2 and Pillow 13.0: python make.py ../../testdata/zoo/png_named_jpg.jpg
"""
import json, math, random, sys
import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from timm.data import auto_augment as aa
from timm.data.mixup import mixup_target
import torch
import torchvision.transforms.functional as F
from torchvision.transforms import autoaugment as va

img = Image.open(sys.argv[1]).convert("RGB")
w, h = 44, 36
x, y = (img.width - w) // 2, (img.height - h) // 2
img = img.crop((x, y, x + w, y + h))
fill = (124, 116, 104)
kw = dict(fillcolor=fill, resample=Image.BILINEAR)
bil = F.InterpolationMode.BILINEAR
cases, out = [], [img]


def add(op, arg, im):
    assert im.size == img.size and im.mode == "RGB"
    cases.append({"op": op, "arg": arg})
    out.append(im)


for f in (0.0, 0.1, 0.37, 0.5, 1.0, 1.4, 1.9):
    add("Color", f, ImageEnhance.Color(img).enhance(f))
    add("Contrast", f, ImageEnhance.Contrast(img).enhance(f))
    add("Brightness", f, ImageEnhance.Brightness(img).enhance(f))
    add("Sharpness", f, ImageEnhance.Sharpness(img).enhance(f))
for b in (1, 2, 4, 7, 8):
    add("Posterize", b, aa.posterize(img, b))
for t in (0, 77, 128, 178.5, 256):
    add("Solarize", t, aa.solarize(img, t))
for a in (0, 33, 110, 128):
    add("SolarizeAdd", a, aa.solarize_add(img, a))
add("AutoContrast", 0, ImageOps.autocontrast(img))
add("Equalize", 0, ImageOps.equalize(img))
add("Invert", 0, ImageOps.invert(img))
for s in (-0.3, 0.07, 0.99):
    add("ShearX", s, aa.shear_x(img, s, **dict(kw)))
    add("ShearY", s, aa.shear_y(img, s, **dict(kw)))
for p in (-0.45, 0.123):
    add("TranslateXRel", p, aa.translate_x_rel(img, p, **dict(kw)))
    add("TranslateYRel", p, aa.translate_y_rel(img, p, **dict(kw)))
for p in (-9, 14.5):
    add("TranslateX", p, aa.translate_x_abs(img, p, **dict(kw)))
    add("TranslateY", p, aa.translate_y_abs(img, p, **dict(kw)))
for d in (-30, 7.3, 90, 135):
    add("Rotate", d, aa.rotate(img, d, **dict(kw)))
# torchvision's translations have the other sign.
add("ShearX", 0.4, va._apply_op(img, "ShearX", 0.4, bil, list(fill)))
add("ShearY", -0.4, va._apply_op(img, "ShearY", -0.4, bil, list(fill)))
add("TranslateX", -12, va._apply_op(img, "TranslateX", 12.7, bil, list(fill)))
add("TranslateY", 5, va._apply_op(img, "TranslateY", -5.2, bil, list(fill)))
add("Rotate", 33, va._apply_op(img, "Rotate", 33.0, bil, list(fill)))
for t in (-0.5, -0.1, 0.04, 0.3):
    add("Hue", t, F.adjust_hue(img, t))

sheet = Image.new("RGB", (8 * w, (len(out) + 7) // 8 * h))
for i, im in enumerate(out):
    sheet.paste(im, (i % 8 * w, i // 8 * h))
sheet.save("ops.png", optimize=True)

# The arguments of operations, positive and negative, by magnitude.
levels = {"timm": {}, "vision": {}, "trivial": {}}
alias = lambda n: n.replace("Increasing", "")
for m in (0, 2.5, 7, 9, 10):
    row = {}
    for name in aa._RAND_INCREASING_TRANSFORMS:
        fn = aa.LEVEL_TO_ARG[name]
        got = []
        for sign in (False, True):
            aa._randomly_negate = lambda v: -v if sign else v
            got.append(float(fn(m, {})[0]) if fn else 0.0)
        row[alias(name)] = sorted(set(got))
    levels["timm"][str(m)] = row


def vision(space, bin):
    row = {}
    for name, (mags, signed) in space.items():
        v = float(mags[bin]) if mags.ndim else 0.0
        vs = [v, -v] if signed else [v]
        if name.startswith("Translate"):
            vs = [float(int(v)) for v in vs]
        if name in ("Brightness", "Color", "Contrast", "Sharpness"):
            vs = [1 + v for v in vs]
        row[name] = sorted(set(vs))
    return row


ra = va.RandAugment()._augmentation_space(31, (200, 331))
ta = va.TrivialAugmentWide()._augmentation_space(31)
for b in (0, 1, 9, 17, 30):
    levels["vision"][str(b)] = vision(ra, b)
    levels["trivial"][str(b)] = vision(ta, b)

targets = []
for labels, classes, lam, smoothing in (([1, 0, 3, 3], 4, 0.7, 0.0), ([1, 0, 2, 4], 5, 0.25, 0.1), ([0, 1], 2, 1.0, 0.2)):
    t = mixup_target(torch.tensor(labels), classes, lam, smoothing)
    targets.append({"labels": labels, "classes": classes, "lam": lam, "smoothing": smoothing, "target": t.double().tolist()})

json.dump({"width": w, "height": h, "fill": fill, "columns": 8, "cases": cases, "levels": levels, "targets": targets}, open("ops.json", "w"), indent=1)
