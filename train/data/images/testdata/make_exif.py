"""Writes exif.json: one picture in the eight EXIF orientations, as JPEG and PNG, and what Pillow's ImageOps.exif_transpose makes of them.

    pip install pillow
    python3 make_exif.py

The picture is made here; no licence is claimed.
"""
import base64, io, json, os
from PIL import Image, ImageOps

src = Image.new("RGB", (24, 16))
src.putdata([(10 * x, 15 * y, 255 if x < 8 and y < 8 else 0) for y in range(16) for x in range(24)])
out = []
for o in range(1, 9):
    for fmt in ("JPEG", "PNG"):
        exif = Image.Exif()
        exif[0x010E] = "a title before the tag"
        exif[0x0112] = o
        b = io.BytesIO()
        src.save(b, fmt, exif=exif, **({"quality": 95, "subsampling": 0} if fmt == "JPEG" else {}))
        seen = ImageOps.exif_transpose(Image.open(io.BytesIO(b.getvalue()))).convert("RGB")
        out.append({"orientation": o, "format": fmt.lower(), "width": seen.width, "height": seen.height,
                    "file": base64.b64encode(b.getvalue()).decode(), "rgb": base64.b64encode(seen.tobytes()).decode()})
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "exif.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(x) for x in out) + "\n]\n")
