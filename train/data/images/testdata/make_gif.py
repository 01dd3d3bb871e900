"""Writes gif.json: GIFs whose first frame is smaller than the screen, or transparent, and what Pillow makes of them as RGB.

    pip install pillow
    python3 make_gif.py

The pictures are made here; no licence is claimed.
"""
import base64, io, json, os, struct
from PIL import Image

PALETTE = [(10, 200, 30), (250, 5, 5), (0, 0, 255), (77, 88, 99)]


def gif(screen, frame, at, pixels, transparent=None, background=0, local=None):
    """A GIF89a by hand: Pillow itself writes frames of full size only."""
    table = lambda p: b"".join(bytes(c) for c in p)
    out = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80 | 1, background, 0) + table(PALETTE)
    if transparent is not None:
        out += b"\x21\xf9\x04" + struct.pack("<BHB", 1, 0, transparent) + b"\0"
    out += b"," + struct.pack("<HHHHB", *at, *frame, 0x81 if local else 0) + (table(local) if local else b"")
    bits, n, data = 0, 0, bytearray()  # LZW without compression: a clear code before each pixel
    for code in [c for p in pixels for c in (4, p)] + [5]:
        bits |= code << n
        n += 3
        while n >= 8:
            data.append(bits & 255)
            bits, n = bits >> 8, n - 8
    if n:
        data.append(bits & 255)
    return out + b"\x02" + bytes([len(data)]) + bytes(data) + b"\0;"


cases = {
    "whole": gif((4, 3), (4, 3), (0, 0), [0, 1, 2, 3] * 3),
    "smaller": gif((4, 3), (2, 2), (1, 1), [1, 2, 3, 1], background=2),
    "smaller, transparent": gif((4, 3), (2, 2), (2, 0), [1, 3, 3, 1], transparent=3),
    "whole, transparent": gif((2, 2), (2, 2), (0, 0), [1, 3, 2, 0], transparent=1),
    "local palette": gif((3, 3), (2, 2), (1, 0), [0, 1, 2, 3], local=[(1, 2, 3), (4, 5, 6), (7, 8, 9), (200, 100, 50)]),
}
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "gif.json"), "w") as f:
    json.dump({k: {"file": base64.b64encode(v).decode(), "rgb": base64.b64encode(Image.open(io.BytesIO(v)).convert("RGB").tobytes()).decode()} for k,
        v in cases.items()}, f, indent=1)
    f.write("\n")
