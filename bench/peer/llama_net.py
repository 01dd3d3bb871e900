# Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
"""The peer's Llama in plain PyTorch: RMSNorm, rotary embedding over halves of a head, SwiGLU, causal attention with grouped queries, tied or not.
Attention is scaled_dot_product_attention, so that it is the best kernel that the installed PyTorch has. Import it after ranks.launch."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

# dim, hidden, layers, heads, kv_heads, vocab, tied
SHAPES = {
    "stories15M": dict(dim=288, hidden=768, layers=6, heads=6, kv_heads=6, vocab=32000, tied=True),
    "d512": dict(dim=512, hidden=1376, layers=8, heads=8, kv_heads=8, vocab=32000, tied=False),
    "tiny": dict(dim=128, hidden=344, layers=4, heads=4, kv_heads=2, vocab=512, tied=True),
    "stories260k": dict(dim=64, hidden=172, layers=5, heads=8, kv_heads=4, vocab=512, tied=True),
}


class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotary(seq, head, theta):
    """cos and sin [seq, 1, head/2]."""
    angle = torch.outer(torch.arange(seq).double(), theta ** (-torch.arange(0, head, 2).double() / head))
    return angle.cos().float()[:, None], angle.sin().float()[:, None]


def rotate(x, cos, sin):  # [B, S, H, head], channel i turns with i + head/2
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x.dtype)


class Block(nn.Module):
    def __init__(self, dim, hidden, heads, kv_heads, eps):
        super().__init__()
        self.head, self.grouped = dim // heads, kv_heads != heads
        self.norm1, self.norm2 = RMSNorm(dim, eps), RMSNorm(dim, eps)
        self.q, self.o = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.k, self.v = (nn.Linear(dim, kv_heads * self.head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(dim, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x, cos, sin, mask):
        b, s, dim = x.shape
        h = self.norm1(x)
        q, k, v = (p(h).view(b, s, -1, self.head) for p in (self.q, self.k, self.v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=self.grouped)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, dim))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """Logits [B, S, vocab] of tokens [B, S]. mask, where given, is bool [B, 1, S, S]: which tokens (last dimension) each one sees."""

    def __init__(self, dim, hidden, layers, heads, kv_heads, vocab, tied, seq, eps=1e-5, theta=1e4):
        super().__init__()
        self.embed, self.norm, self.lm_head = nn.Embedding(vocab, dim), RMSNorm(dim, eps), nn.Linear(dim, vocab, bias=False)
        self.blocks = nn.ModuleList(Block(dim, hidden, heads, kv_heads, eps) for _ in range(layers))
        cos, sin = rotary(seq, dim // heads, theta)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        if tied:
            self.lm_head.weight = self.embed.weight

    def init(self, std=0.02, depth_scaled=True):
        """Normal weights; those that lead back into the residual stream are smaller by the root of twice the number of layers."""
        back = std / math.sqrt(2 * len(self.blocks)) if depth_scaled else std
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=back if name.endswith(("o.weight", "down.weight")) else std)
        return self

    def forward(self, tokens, mask=None):
        x, s = self.embed(tokens), tokens.shape[1]
        for b in self.blocks:
            x = b(x, self.cos[:s], self.sin[:s], mask)
        return self.lm_head(self.norm(x))
