"""Loads a GGUF file with transformers, reads a text and prints the token that comes next: first_token.py FILE TEXT."""

import os
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


@torch.inference_mode()
def main(file: Path, text: str) -> None:
    torch.set_num_threads(int(os.environ.get("BENCH_THREADS", "2")))
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()
    logits = model(**tokenizer(text, return_tensors="pt"), use_cache=True, logits_to_keep=1).logits
    print(tokenizer.decode(logits[0, -1].argmax()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
