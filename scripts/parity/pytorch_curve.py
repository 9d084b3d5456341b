#!/usr/bin/env python3
"""The loss curve of one tiny configuration, by an implementation that shares nothing with ours.

    python scripts/parity/pytorch_curve.py [--out crates/train/tests/fixtures/pytorch_curve.json]

A Llama-style decoder and AdamW (decoupled decay, clipping by the global norm), written with plain
tensor operations and PyTorch's autograd: no torch.nn modules, no torch.optim, no transformers. It
computes in double precision from the single-precision initial weights; --precision single shows how
far single precision alone moves the curve. The train crate's test replays the fixture.

The fixture describes itself: the configuration, the initial weights as a formula (`value` below), the
tokens of every step, the hyperparameters, and for every step the learning rate, the mean loss before
the update and the gradient's norm before clipping. Needs: pip install torch (any recent version).
"""

import argparse
import json
import math
import pathlib

import torch

CONFIG = {
    "num-layers": 2,
    "num-heads": 4,
    "num-kv-heads": 2,
    "head-dim": 8,
    "d-model": 32,
    "d-ff": 48,
    "vocab-size": 61,
    "max-seq-len": 32,
    "rope-theta": 10000.0,
    "norm-eps": 1e-5,
    "embeddings": "tied",
    "reward-head": "absent",
}
STEPS = 20
SEQUENCES_PER_STEP = 4
HYPERPARAMETERS = {
    "beta1": 0.9,
    "beta2": 0.95,
    "epsilon": 1e-8,
    "weight-decay": 0.1,
    "max-grad-norm": 1.0,
}
PEAK_LEARNING_RATE = 1e-2
WARMUP_STEPS = 5
FORMULA = (
    "Tensor number n (from 0, in the order of `tensors`), element i (row-major): "
    "u = fmix32((i + 1000003 * n) mod 2^32) / 2^31 - 1 with fmix32 the finalizer of MurmurHash3; "
    "the value is offset + scale * u, computed in double precision and rounded to single."
)


def fmix32(h):
    h ^= h >> 16
    h = h * 0x85EBCA6B & 0xFFFFFFFF
    h ^= h >> 13
    h = h * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def tensors():
    """Name, shape, offset, scale and whether weight decay applies, in a fixed order."""
    d, f, v = CONFIG["d-model"], CONFIG["d-ff"], CONFIG["vocab-size"]
    q = CONFIG["num-heads"] * CONFIG["head-dim"]
    k = CONFIG["num-kv-heads"] * CONFIG["head-dim"]
    rows = [("embedding", [v, d], 0.0, 0.1, False)]
    for layer in range(CONFIG["num-layers"]):
        at = f"blocks.{layer}."
        rows += [
            (at + "attention.norm", [d], 1.0, 0.1, False),
            (at + "attention.query", [q, d], 0.0, 0.2, True),
            (at + "attention.key", [k, d], 0.0, 0.2, True),
            (at + "attention.value", [k, d], 0.0, 0.2, True),
            (at + "attention.output", [d, q], 0.0, 0.2, True),
            (at + "feed_forward.norm", [d], 1.0, 0.1, False),
            (at + "feed_forward.gate", [f, d], 0.0, 0.2, True),
            (at + "feed_forward.up", [f, d], 0.0, 0.2, True),
            (at + "feed_forward.down", [d, f], 0.0, 0.2, True),
        ]
    rows.append(("final_norm", [d], 1.0, 0.1, False))
    keys = ("name", "shape", "offset", "scale", "decays")
    return [dict(zip(keys, row)) for row in rows]


def value(number, tensor, dtype):
    count = math.prod(tensor["shape"])
    units = [fmix32(i + 1000003 * number & 0xFFFFFFFF) / 2**31 - 1 for i in range(count)]
    values = torch.tensor([tensor["offset"] + tensor["scale"] * u for u in units], dtype=torch.float64)
    # Rounded to single first: both sides start from the same numbers.
    return values.float().to(dtype).reshape(tensor["shape"]).requires_grad_()


def steps():
    """Token sequences of unequal length: arithmetic progressions, so that there is something to learn."""
    v = CONFIG["vocab-size"]
    for step in range(STEPS):
        sequences = []
        for s in range(SEQUENCES_PER_STEP):
            h = fmix32(7919 * step + s + 1)
            length = 9 + h % 24
            start, stride = (h >> 8) % v, 1 + (h >> 16) % 3
            sequences.append([(start + stride * i) % v for i in range(length)])
        yield sequences


def learning_rate(step):
    """Linear warm-up, then a cosine down to a tenth at the last step."""
    if step < WARMUP_STEPS:
        return PEAK_LEARNING_RATE * (step + 1) / WARMUP_STEPS
    share = (step - WARMUP_STEPS) / (STEPS - 1 - WARMUP_STEPS)
    return PEAK_LEARNING_RATE * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * share)))


def norm(x, gain):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + CONFIG["norm-eps"]) * gain


def rotate(x):
    """Rotary positions on [heads, time, head_dim]; element i is paired with i + head_dim / 2."""
    half = x.shape[-1] // 2
    frequency = CONFIG["rope-theta"] ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * frequency
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


def attention(w, at, x):
    heads, kv_heads, h = CONFIG["num-heads"], CONFIG["num-kv-heads"], CONFIG["head-dim"]
    t = x.shape[0]
    y = norm(x, w[at + "norm"])
    q = rotate((y @ w[at + "query"].T).view(t, heads, h).transpose(0, 1))
    k = rotate((y @ w[at + "key"].T).view(t, kv_heads, h).transpose(0, 1))
    v = (y @ w[at + "value"].T).view(t, kv_heads, h).transpose(0, 1)
    k, v = (z.repeat_interleave(heads // kv_heads, 0) for z in (k, v))
    scores = q @ k.transpose(1, 2) / math.sqrt(h)
    masked = torch.ones(t, t, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(masked, -math.inf).softmax(-1)
    return (weights @ v).transpose(0, 1).reshape(t, heads * h) @ w[at + "output"].T


def feed_forward(w, at, x):
    y = norm(x, w[at + "norm"])
    gate = y @ w[at + "gate"].T
    return (gate * torch.sigmoid(gate) * (y @ w[at + "up"].T)) @ w[at + "down"].T


def summed_loss(w, tokens):
    ids = torch.tensor(tokens)
    x = w["embedding"][ids[:-1]]
    for layer in range(CONFIG["num-layers"]):
        x = x + attention(w, f"blocks.{layer}.attention.", x)
        x = x + feed_forward(w, f"blocks.{layer}.feed_forward.", x)
    logits = norm(x, w["final_norm"]) @ w["embedding"].T
    return -logits.log_softmax(-1).gather(1, ids[1:, None]).sum()


def update(w, moments, decays, rate, step, scale):
    """AdamW (Loshchilov and Hutter 2019, algorithm 2), with decay scaled by the learning rate."""
    p = HYPERPARAMETERS
    with torch.no_grad():
        for name, weight in w.items():
            gradient = weight.grad * scale
            first, second = moments[name]
            first.mul_(p["beta1"]).add_((1 - p["beta1"]) * gradient)
            second.mul_(p["beta2"]).add_((1 - p["beta2"]) * gradient * gradient)
            mean = first / (1 - p["beta1"] ** step)
            spread = (second / (1 - p["beta2"] ** step)).sqrt() + p["epsilon"]
            decay = p["weight-decay"] if decays[name] else 0.0
            weight -= rate * (mean / spread + decay * weight)
            weight.grad = None


def run(dtype):
    layout = tensors()
    w = {tensor["name"]: value(n, tensor, dtype) for n, tensor in enumerate(layout)}
    decays = {tensor["name"]: tensor["decays"] for tensor in layout}
    moments = {name: (torch.zeros_like(x), torch.zeros_like(x)) for name, x in w.items()}
    curve = []
    for index, sequences in enumerate(steps()):
        targets = sum(len(tokens) - 1 for tokens in sequences)
        loss = sum(summed_loss(w, tokens) for tokens in sequences) / targets
        loss.backward()
        gradient_norm = math.sqrt(sum(float((x.grad.double() ** 2).sum()) for x in w.values()))
        scale = min(1.0, HYPERPARAMETERS["max-grad-norm"] / gradient_norm)
        rate = learning_rate(index)
        update(w, moments, decays, rate, index + 1, scale)
        row = {"learning-rate": rate, "loss": float(loss.detach()), "gradient-norm": gradient_norm}
        curve.append({**row, "sequences": sequences})
    final = {name: float(x.detach().double().norm()) for name, x in w.items()}
    return curve, final


def render(fixture):
    """JSON with a line for each entry, and for each item of a list."""
    lines = lambda items: "[\n  " + ",\n  ".join(map(json.dumps, items)) + "\n ]"
    entry = lambda x: lines(x) if isinstance(x, list) else json.dumps(x)
    rows = [f" {json.dumps(key)}: {entry(x)}" for key, x in fixture.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = pathlib.Path(__file__).parents[2] / "crates/train/tests/fixtures/pytorch_curve.json"
    parser.add_argument("--out", type=pathlib.Path, default=default)
    parser.add_argument("--precision", choices=["double", "single"], default="double")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dtype = torch.float64 if arguments.precision == "double" else torch.float32
    curve, final = run(dtype)
    fixture = {
        "about": "Made by scripts/parity/pytorch_curve.py. Each step is one batch of the sequences "
        "given, every token but a sequence's first a target; `loss` is the mean over the targets "
        "before the update, `gradient-norm` the norm of its gradient before clipping.",
        "precision": arguments.precision,
        "config": CONFIG,
        "initial-weights": {"formula": FORMULA, "tensors": tensors()},
        "hyperparameters": HYPERPARAMETERS,
        "steps": curve,
        "final-tensor-norms": final,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(render(fixture))
    losses = [row["loss"] for row in curve]
    print(f"{arguments.out}: loss {losses[0]:.6f} -> {losses[-1]:.6f} over {len(losses)} steps")


if __name__ == "__main__":
    main()
