"""Writes added.json: what Hugging Face's tokenizers makes of random texts with random added tokens, over all pre-tokenizers and normalizers that
package tokenizer reads. It begins with bytelevel.json and characters.json of this directory.

    pip install tokenizers==0.23.3
    python3 make_added.py                              # the fixture
    python3 make_added.py --variants 4000 --seed 7 --out /tmp/added.json
    GOTRAIN_TOKENIZER_VECTORS=/tmp/added.json go test -run AddedTokens ..

Lists of numbers; no licence is claimed.
"""
import argparse, copy, json, os, random
from tokenizers import Tokenizer

here = os.path.dirname(os.path.abspath(__file__))
base = {n: json.load(open(os.path.join(here, n), encoding="utf-8")) for n in ("bytelevel.json", "characters.json")}
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTENTS = ["<tok>", "<t", "ok>", "<|im_start|>", "<|im_end|>", "im_start", "the", "he", "cat", "x", "é", "猫", "  ", " ", "\n", "\t\t", "▁", "▁the",
    " the", "the ",
            "a b", "▁▁", "<a>", "<b>", "a><", "Ġ", "Ġthe", "12", "1", "don't", "'t", "½", "_", "‿", "क", "क्", "\u200d", "<0x41>",
             "user\n", "!!", "é́"]
PIECES = CONTENTS + ["hi", "user", " ", " ", "  ", "▁", "\n", "\t", "hello world", "The", "and", "S", "12345", "ab", "é", "ü", "😀", "你好",
    "don't we'll", "\u00a0", "\u3000",
                     ".", ",", "<", ">", "|", "_", "-", "1½", "zq", "\u0301", "Σ", "٣"]


def metaspace(rng, **k):
    p = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": rng.choice(["first", "always", "never"]), "split": rng.random() < 0.5}
    return {**p, **k}


def levels(rng):
    """A pre-tokenizer of bytes."""
    def level(prefix, regex):
        return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": rng.random() < 0.5, "use_regex": regex}
    kind = rng.choice(["level", "level", "split", "digits", "sequence"])
    if kind == "level":
        return level(rng.random() < 0.5, rng.random() < 0.7)
    if kind == "split":
        how = rng.choice([("Isolated", False), ("Removed", True)])
        split = {"type": "Split", "pattern": {"Regex": rng.choice([GPT2, LLAMA3, LLAMA3.replace("{1,3}", "")])}, "behavior": how[0], "invert": how[1]}
        return {"type": "Sequence", "pretokenizers": [split, level(False, False)]}
    if kind == "digits":
        return {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, level(False, True)]}
    return {"type": "Sequence", "pretokenizers": [level(rng.random() < 0.5, True)]}


def characters(rng):
    """A normalizer, a pre-tokenizer and a decoder of characters."""
    prepend, replace = {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    kind = rng.choice(["metaspace", "metaspace", "metaspace", "llama", "mixed", "none"])
    back = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    if kind == "llama":
        parts = [prepend, replace] if rng.random() < 0.7 else [replace, prepend] if rng.random() < 0.5 else [replace]
        strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prepend in parts else []
        return {"type": "Sequence", "normalizers": parts}, None, {"type": "Sequence", "decoders": back + strip}
    if kind == "none":
        return None, None, None
    pre = metaspace(rng)
    if rng.random() < 0.2:
        pre = {"type": "Sequence", "pretokenizers": [pre]}
    return (replace if kind == "mixed" else None), pre, None


def added(rng, vocab, size):
    out, ids = [], {}
    for content in rng.sample(CONTENTS, rng.randint(2, 7)):
        if content.replace(" ", "▁") in [c.replace(" ", "▁") for c in ids]:
            continue  # of two that are the same normalised text, the library finds a random one
        special = rng.random() < 0.4 and (len(content) > 1 or content not in vocab)
        if content in vocab and special and content not in ("<unk>", "<s>", "</s>"):
            special = False  # Encode never gives a special token for plain text, whatever the vocabulary says
        flags = {k: rng.random() < p for k, p in (("single_word", 0.25), ("lstrip", 0.3), ("rstrip", 0.3), ("normalized", 0.5))}
        ids[content] = vocab.get(content, size + len(ids))
        out.append({"id": ids[content], "content": content, **flags, "special": special})
    news = sorted((a for a in out if a["id"] >= size), key=lambda a: a["id"])
    for i, a in enumerate(news):  # the library numbers them without gaps
        a["id"] = size + i
    return sorted(out, key=lambda a: a["id"])


def patch(rng, file):
    b, p = base[file], {}
    vocab = b["model"]["vocab"]
    if file == "bytelevel.json":
        p["normalizer"], p["pre_tokenizer"], p["decoder"] = None, levels(rng), {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
            "use_regex": True}
        p["model"] = {"ignore_merges": rng.random() < 0.5}
    else:
        p["normalizer"], p["pre_tokenizer"], p["decoder"] = characters(rng)
        p["model"] = {"fuse_unk": rng.random() < 0.5, "byte_fallback": rng.random() < 0.5}
    keep = [a for a in b["added_tokens"] if a["content"] in vocab]
    p["added_tokens"] = keep + added(rng, vocab, max(vocab.values()) + 1)
    return p


def text(rng):
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 9)))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--variants", type=int, default=118)
    a.add_argument("--texts", type=int, default=17)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--out", default=os.path.join(here, "added.json"))
    a = a.parse_args()
    rng, out = random.Random(a.seed), []
    for n in range(a.variants):
        file = "bytelevel.json" if n % 3 == 0 else "characters.json"
        p = patch(rng, file)
        full = copy.deepcopy(base[file])
        for k, v in p.items():
            full[k] = {**full[k], **v} if k == "model" else v
        full["post_processor"] = p["post_processor"] = None
        tok = Tokenizer.from_str(json.dumps(full))
        rows = []
        near = [t["content"] for t in p["added_tokens"]]
        for _ in range(a.texts):
            s = text(rng)
            if rng.random() < 0.7:  # more of the tokens of this one
                s = "".join(rng.choice(near + [" ", "a", s[:3]]) for _ in range(rng.randint(1, 6)))
            row = {"text": s}
            try:
                for key, plain in (("ids", False), ("plain", True)):
                    tok.encode_special_tokens = plain
                    row[key] = tok.encode(s, add_special_tokens=False).ids
            except BaseException as e:  # the library panics where a token that strips takes more than the next one
                if "bad split" not in str(e):
                    raise
                continue
            if row["plain"] == row["ids"]:
                del row["plain"]
            odd = {t["id"] for t in p["added_tokens"] if t["normalized"] or t["content"] in ("<unk>", "<s>") or not t["content"].isascii()}
            if p["decoder"] and not odd & set(row["ids"]):  # doc.go says how Decode differs
                row["decoded"] = tok.decode(row["ids"])
            rows.append(row)
        out.append({"file": file, "name": str(n), "patch": p, "rows": rows})
    with open(a.out, "w", encoding="utf-8") as f:
        f.write('{"variants":[\n' + ",\n".join(json.dumps(v, ensure_ascii=False, separators=(",", ":")) for v in out) + "\n]}\n")


main()
