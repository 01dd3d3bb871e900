# SPDX-License-Identifier: Apache-2.0
"""Makes the reference values of this folder with timm 1.0.31 (Apache-2.0) and PyTorch 2.15: python make_fixtures.py

token.safetensors, mean.safetensors: a training step of two tiny networks with random weights, in float64, stored in float32.
timm.json: names and shapes of the parameters of DeiT-S and ViT-B and resampled positions.
"""
import json
import torch
import timm
from timm.layers import resample_abs_pos_embed
from timm.models.vision_transformer import VisionTransformer
from safetensors.torch import save_file


def step(name, **kw):
    torch.manual_seed(1)
    m = VisionTransformer(img_size=16, patch_size=4, embed_dim=12, depth=2, num_heads=2, num_classes=5, **kw).double()
    tensors = {}
    with torch.no_grad():
        for k, p in m.named_parameters():
            p.copy_((torch.randn(p.shape) * 0.3 + (1.0 if "norm" in k and k.endswith("weight") else 0.0)).float().double())
            tensors[k] = p.detach().clone().float()
    x = torch.randn(4, 3, 16, 16).float().double()
    labels = torch.tensor([0, 3, 4, 1])
    logits = m(x)
    loss = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)
    loss.backward()
    tensors |= {"x": x.float(), "labels": labels.int(), "logits": logits.detach().float(), "loss": loss.detach().float().reshape(1)}
    tensors |= {"grad." + k: p.grad.float() for k, p in m.named_parameters()}
    save_file({k: v.contiguous() for k, v in tensors.items()}, name + ".safetensors")


step("token")
step("mean", global_pool="avg", class_token=False, qkv_bias=False)

out = {"names": {}, "positions": []}
for key, name in {"deit-s": "deit_small_patch16_224", "vit-b": "vit_base_patch16_224"}.items():
    out["names"][key] = [[k, list(v.shape)] for k, v in timm.create_model(name).state_dict().items()]
for prefix, a, b in ((1, 3, 5), (1, 5, 3), (0, 4, 4), (1, 7, 2)):
    v = torch.randn(1, prefix + a * a, 2)
    w = resample_abs_pos_embed(v, new_size=[b, b], num_prefix_tokens=prefix)
    out["positions"].append({"prefix": prefix, "from": a, "to": b, "has": v.flatten().tolist(), "want": w.flatten().tolist()})
json.dump(out, open("timm.json", "w"), separators=(",", ":"))
