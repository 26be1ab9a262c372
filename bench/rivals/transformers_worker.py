"""Hugging Face transformers as a worker: see worker.py."""

import torch
import torch.nn.functional as F
import transformers
from transformers import AutoModel, AutoModelForCausalLM

from worker import THREADS, NotOffered, Way, serve


def ways(work: dict) -> list[Way]:
    match work["work"]:
        case "prefill":
            return prefill(work)
        case "generate":
            return generate(work)
        case "embed":
            return embed(work)
        case other:
            raise NotOffered(other)


def language_model(work: dict) -> torch.nn.Module:
    # The same function as GPT-2's "gelu_new", as one operation instead of eight.
    activation = {"activation_function": "gelu_pytorch_tanh"}
    return AutoModelForCausalLM.from_pretrained(work["model"], attn_implementation="sdpa", dtype=torch.float32, **activation).eval()


def prefill(work: dict) -> list[Way]:
    model, tokens = language_model(work), torch.tensor([work["tokens"]])
    run = torch.inference_mode()(lambda: model(tokens, use_cache=True, logits_to_keep=1).logits)
    return [Way("forward", run, lambda logits: {"logits": logits[0, -1].numpy()})]


def generate(work: dict) -> list[Way]:
    model, prompt = language_model(work), torch.tensor([work["tokens"]])
    everywhere = torch.ones_like(prompt)

    @torch.inference_mode()
    def call(most: int) -> torch.Tensor:
        options = {"max_new_tokens": most, "min_new_tokens": most, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
        return model.generate(prompt, attention_mask=everywhere, **options)[0, prompt.shape[1] :]

    @torch.inference_mode()
    def loop(most: int) -> torch.Tensor:
        tokens, cache, written = prompt, None, []
        for _ in range(most):
            step = model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
            tokens, cache = step.logits[:, -1].argmax(-1, keepdim=True), step.past_key_values
            written.append(tokens)
        return torch.cat(written, 1)[0]

    def way(name: str, write) -> Way:
        most = work["most"]
        return Way(name, lambda: write(most), lambda tokens: {"tokens": tokens.numpy()}, trial=lambda: write(16))

    return [way("generate", call), way("loop with past_key_values", loop)]


def embed(work: dict) -> list[Way]:
    model = AutoModel.from_pretrained(work["model"], attn_implementation="sdpa", dtype=torch.float32).eval()
    sentences = [torch.tensor(sentence) for sentence in work["sentences"]]

    @torch.inference_mode()
    def run() -> torch.Tensor:
        tokens = torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True)
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        mask = (torch.arange(tokens.shape[1]) < lengths[:, None]).long()
        hidden = model(input_ids=tokens, attention_mask=mask).last_hidden_state
        summed = (hidden * mask[:, :, None]).sum(1)
        return F.normalize(summed / lengths[:, None], dim=1)

    return [Way("one padded batch", run, lambda vectors: {"vectors": vectors.numpy()})]


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    transformers.logging.set_verbosity_error()
    serve(f"transformers {transformers.__version__}", ways)
