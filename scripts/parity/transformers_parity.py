#!/usr/bin/env python3
"""Loads an exported directory in Hugging Face's transformers and compares it with our engine.

    python scripts/parity/transformers_parity.py DIRECTORY [--record parity.json] [--tolerance 1e-4]

The record is a JSON object that the program writes beside the exported model (model::export::
parity_record): prompt_ids [t], logits [t, vocab_size] after each of them, and greedy_ids, the most
likely continuation. Needs: pip install torch transformers safetensors numpy (any recent version).
Exits with 1 if a logit differs by more than the tolerance or the greedy answer differs.
"""

import argparse
import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM


def greedy_answer(model, prompt_ids, count):
    """The most likely continuation, with the model's own key/value cache and no end token."""
    ids = torch.tensor([prompt_ids])
    answer = []
    cache = None
    for _ in range(count):
        out = model(ids, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        # argmax gives the first of equal values, as our engine does.
        answer.append(int(out.logits[0, -1].argmax()))
        ids = torch.tensor([answer[-1:]])
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path, help="default: DIRECTORY/parity.json")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    record = json.loads((arguments.record or arguments.directory / "parity.json").read_text())

    model = AutoModelForCausalLM.from_pretrained(
        arguments.directory, dtype=torch.float32, attn_implementation="eager"
    )
    model.eval()
    with torch.no_grad():
        theirs = model(torch.tensor([record["prompt_ids"]])).logits[0]
        answer = greedy_answer(model, record["prompt_ids"], len(record["greedy_ids"]))
        # The same model in double precision tells whose rounding a difference is.
        exact = model.double()(torch.tensor([record["prompt_ids"]])).logits[0]
    ours = torch.tensor(record["logits"], dtype=torch.float32)
    if ours.shape != theirs.shape:
        sys.exit(f"logits have shape {list(theirs.shape)}, the record has {list(ours.shape)}")
    difference = (ours - theirs).abs().max().item()
    result = {
        "architecture": type(model).__name__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "prompt_tokens": len(record["prompt_ids"]),
        "largest_logit": theirs.abs().max().item(),
        "max_logit_difference": difference,
        "ours_from_double_precision": (ours - exact).abs().max().item(),
        "theirs_from_double_precision": (theirs - exact).abs().max().item(),
        "greedy_tokens": len(answer),
        "same_greedy_answer": answer == record["greedy_ids"],
    }
    print(json.dumps(result, indent=2))
    if difference > arguments.tolerance or not result["same_greedy_answer"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
