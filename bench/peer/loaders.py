"""Loads pictures of a folder as ImageNet training does: a random crop resized to 224, mirrored or not, normalised, float32 [N 3 224 224].

    python loaders.py --loader pillow --root DIR --seconds 3 [--augment]

One thread; prints one line of JSON. Loaders: pillow (torchvision's ImageFolder and transforms on Pillow, or Pillow-SIMD where that is installed),
torchvision (its own decoder, transforms v2 on tensors), albumentations (simplejpeg and OpenCV), dali (NVIDIA DALI on the CPU), numpy and datasets (windows of
tokens: --root is a file of uint16).
"""
import argparse, glob, json, os, time

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def folder(root, transform, loader=None):
    from torchvision.datasets import ImageFolder
    return ImageFolder(root, transform, **({"loader": loader} if loader else {}))


def batches(dataset, n, collate=None):
    """Batches without end, in a new random order each epoch."""
    import torch
    from torch.utils.data import DataLoader
    while True:
        yield from DataLoader(dataset, batch_size=n, shuffle=True, drop_last=len(dataset) >= n, num_workers=0, collate_fn=collate)


def augmented(a, T):
    """With --augment: what happens to pixels and to normalised values, and a collate function with mixup and cutmix, as in torchvision's references."""
    if not a.augment:
        return [], [], None
    from torch.utils.data import default_collate
    from torchvision.transforms import InterpolationMode, v2
    pixels = [T.RandAugment(num_ops=2, magnitude=9, interpolation=InterpolationMode.BILINEAR), T.ColorJitter(0.4, 0.4, 0.4, 0.1)]
    classes = len([d for d in os.listdir(a.root) if os.path.isdir(os.path.join(a.root, d))])
    mix = v2.RandomChoice([v2.MixUp(alpha=0.2, num_classes=classes), v2.CutMix(alpha=1.0, num_classes=classes)])
    return pixels, [T.RandomErasing(p=0.25, value="random")], lambda batch: mix(*default_collate(batch))


def pillow(a):
    import PIL, torchvision
    from torchvision import transforms as T
    pixels, values, mix = augmented(a, T)
    t = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), *pixels, T.ToTensor(), T.Normalize(MEAN, STD), *values])
    return f"torchvision {torchvision.__version__}, Pillow {PIL.__version__}", batches(folder(a.root, t), a.batch, mix)


def torchvision(a):
    import torch, torchvision
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms import v2 as T
    pixels, values, mix = augmented(a, T)
    t = T.Compose([T.RandomResizedCrop(224, antialias=True), T.RandomHorizontalFlip(), *pixels, T.ToDtype(torch.float32, scale=True), T.Normalize(MEAN, STD),
                   *values])
    load = lambda path: decode_jpeg(read_file(path), mode=ImageReadMode.RGB)
    return f"torchvision {torchvision.__version__}, decode_jpeg", batches(folder(a.root, t, load), a.batch, mix)


def albumentations(a):
    os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"
    import albumentations as A, cv2, numpy as np, simplejpeg, torch
    cv2.setNumThreads(1)
    t = A.Compose([A.RandomResizedCrop(size=(224, 224), interpolation=cv2.INTER_AREA), A.HorizontalFlip(), A.Normalize(MEAN, STD)])

    def load(path):
        with open(path, "rb") as f:
            return simplejpeg.decode_jpeg(f.read())

    def transform(x):
        return torch.from_numpy(np.ascontiguousarray(t(image=x)["image"].transpose(2, 0, 1)))
    return f"albumentations {A.__version__}, simplejpeg, OpenCV {cv2.__version__}", batches(folder(a.root, transform, load), a.batch)


def dali(a):
    import nvidia.dali as D
    from nvidia.dali import fn, types

    @D.pipeline_def(batch_size=a.batch, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe():
        jpegs, labels = fn.readers.file(file_root=a.root, random_shuffle=True)
        x = fn.decoders.image_random_crop(jpegs, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3])
        x = fn.resize(x, size=[224, 224], interp_type=types.INTERP_TRIANGULAR)
        x = fn.crop_mirror_normalize(x, dtype=types.FLOAT, output_layout="CHW", mirror=fn.random.coin_flip(),
                                     mean=[255 * m for m in MEAN], std=[255 * s for s in STD])
        return x, labels
    p = pipe()
    p.build()

    def run():
        while True:
            yield p.run()
    return f"NVIDIA DALI {D.__version__}, CPU", run()


def numpy(a):
    import numpy as np
    ids = np.memmap(a.root, dtype=np.uint16, mode="r")
    rng = np.random.default_rng(1)

    def run():
        while True:
            at = rng.integers(0, len(ids) - a.seq - 1, a.batch)
            x = np.stack([ids[i:i + a.seq] for i in at]).astype(np.int64)
            y = np.stack([ids[i + 1:i + 1 + a.seq] for i in at]).astype(np.int64)
            yield x, y
    return f"numpy {np.__version__}, memmap", run()


def datasets(a):
    import datasets as H, numpy as np
    ids = np.fromfile(a.root, dtype=np.uint16).astype(np.int32)
    n = (len(ids) - 1) // a.seq
    d = H.Dataset.from_dict({"tokens": ids[:n * a.seq].reshape(n, a.seq), "targets": ids[1:n * a.seq + 1].reshape(n, a.seq)}).with_format("torch")
    return f"Hugging Face datasets {H.__version__}", batches(d, a.batch)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--loader", required=True, choices=["pillow", "torchvision", "albumentations", "dali", "numpy", "datasets"])
    p.add_argument("--root", required=True)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--seq", type=int, default=256)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--augment", action="store_true", help="pillow, torchvision: RandAugment, colour jitter, random erasing with noise, mixup and cutmix")
    a = p.parse_args()
    if a.loader not in ("numpy", "dali"):
        import torch
        torch.set_num_threads(1)
    version, it = globals()[a.loader](a)
    for _ in range(3):
        next(it)
    n, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < a.seconds:
        next(it)
        n += a.batch
    took = time.perf_counter() - begin
    items = n * (a.seq if a.loader in ("numpy", "datasets") else 1)
    print(json.dumps({"peer": a.loader, "version": version, "rate": items / took}))
