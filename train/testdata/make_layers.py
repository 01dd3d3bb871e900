#!/usr/bin/env python3
# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""Write layers.json: the exponent of the layer-wise learning-rate decay of every parameter, by timm.

    python3 make_layers.py > layers.json        # needs torch and timm
"""
import json, math, sys

import timm
import torch
from timm.optim import param_groups_layer_decay

out = {"made_by": f"make_layers.py with timm {timm.__version__} and PyTorch {torch.__version__}, no third-party data"}
for name in ("resnet18", "resnet50", "deit_tiny_patch16_224"):
    model = timm.create_model(name, num_classes=10)
    named = {id(p): n for n, p in model.named_parameters()}
    scale = {named[id(p)]: g["lr_scale"] for g in param_groups_layer_decay(model, layer_decay=0.5) for p in g["params"]}
    out[name] = [[n, round(-math.log2(scale[n]))] for n, _ in model.named_parameters()]
json.dump(out, sys.stdout)
print()
