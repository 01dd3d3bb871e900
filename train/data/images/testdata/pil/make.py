#!/usr/bin/env python3
"""Makes the reference pictures of this folder with Pillow: python3 make.py
Rows first, then columns, as Pillow up to 11 always does; newer versions choose the order and so differ by one level now and then."""
import json, os
from PIL import Image, __version__
here = os.path.dirname(os.path.abspath(__file__))
src = Image.open(f'{here}/../zoo/png_named_jpg.jpg').convert('RGB')
cases = [  # name, grey, box of the crop, size to resize it to, window of that
    ('down', False, (10, 20, 110, 110), (64, 64), None),
    ('up', False, (50, 50, 70, 65), (48, 40), None),
    ('whole', False, (0, 0, 227, 151), (32, 32), None),
    ('wide', False, (3, 70, 226, 79), (20, 30), None),
    ('tall', False, (100, 0, 103, 151), (7, 150), None),
    ('pixel', False, (100, 100, 101, 101), (5, 5), None),
    ('tiny', False, (0, 0, 227, 151), (1, 1), None),
    ('grey', True, (17, 5, 217, 150), (40, 50), None),
    ('same', False, (17, 5, 57, 45), (40, 40), None),
    ('eval', False, (0, 0, 227, 151), (int(96 * 227 / 151), 96), 80),
]
rows = []
for name, grey, box, size, window in cases:
    im = (src.convert('L') if grey else src).crop(box)
    im = im.resize((size[0], im.height), Image.BILINEAR).resize(size, Image.BILINEAR)
    if window:
        x, y = int(round((size[0] - window) / 2.0)), int(round((size[1] - window) / 2.0))
        im = im.crop((x, y, x + window, y + window))
    im.save(f'{here}/{name}.png', icc_profile=None)
    rows.append(dict(name=name, grey=grey, box=box, size=size, window=window))
json.dump(dict(pillow=__version__, cases=rows), open(f'{here}/cases.json', 'w'), indent=1)
