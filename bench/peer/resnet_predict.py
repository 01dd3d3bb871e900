#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""The peer of -what predict: classifies the pictures of a list with torchvision's ResNet and the weights of a gotrain checkpoint.

    python3 resnet_predict.py --weights DIR/model.safetensors --list FILES.txt --depth 50 --threads 2 --dtype f32 [--compile]

Pictures are loaded as in torchvision's examples: Pillow, Resize, CenterCrop, ToTensor, Normalize, in a DataLoader with workers. The time is that of the
loop over all pictures, after two batches to warm up: start, import and torch.compile do not count. Prints one JSON line.
"""
import argparse, json, time

p = argparse.ArgumentParser()
p.add_argument("--weights", required=True)
p.add_argument("--list", required=True)
p.add_argument("--depth", type=int, default=50)
p.add_argument("--resize", type=int, default=256)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--workers", type=int, default=2, help="processes that load; 0: the one that computes")
p.add_argument("--batch", type=int, default=32)
p.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="bf16 = autocast")
p.add_argument("--compile", action="store_true")
a = p.parse_args()

import torch, torchvision
from PIL import Image
from safetensors.torch import load_file
from torchvision import transforms as T

torch.set_num_threads(a.threads)
weights = load_file(a.weights)
net = getattr(torchvision.models, f"resnet{a.depth}")(num_classes=weights["fc.bias"].shape[0])
net.load_state_dict(weights, strict=False)
net = net.eval().to(memory_format=torch.channels_last)
if a.compile:
    net = torch.compile(net)
prepare = T.Compose([T.Resize(a.resize), T.CenterCrop(224), T.ToTensor(), T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
paths = [line.strip() for line in open(a.list) if line.strip()]


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return len(paths)

    def __getitem__(self, i):
        return prepare(Image.open(paths[i]).convert("RGB"))


def forward(x):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.dtype == "bf16"):
        return net(x.contiguous(memory_format=torch.channels_last)).float()


with torch.inference_mode():
    for n in (a.batch, a.batch, len(paths) % a.batch):
        if n:
            forward(torch.zeros(n, 3, 224, 224))
    begin = time.perf_counter()
    labels = []
    for x in torch.utils.data.DataLoader(Pictures(), batch_size=a.batch, num_workers=a.workers):
        labels += forward(x).argmax(1).tolist()
    took = time.perf_counter() - begin
print(json.dumps({"version": torch.__version__, "rate": len(paths) / took, "seconds": took, "labels": labels}))
