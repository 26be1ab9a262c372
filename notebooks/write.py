"""Writes attention.en.ipynb and attention.ko.ipynb: the same cells with texts in two languages, executed.

    python notebooks/write.py            # both, anew
    python notebooks/write.py --check    # runs both again and compares what they print

Every decimal number in a text must stand in what a cell prints.
"""

from __future__ import annotations

import os
import pathlib
import re
import sys

import nbformat
from nbclient import NotebookClient

HERE = pathlib.Path(__file__).parent
MINILM = pathlib.Path(os.environ.get("FOVEAL_TEST_CACHE", pathlib.Path.home() / ".cache" / "foveal-test")) / "minilm"

#: (English, Korean) texts, and cells of code between them.
CELLS: list[tuple[str, str] | str] = [
    (
        "# Attention, from three words to a whole model\n\nEach word asks a question (its *query*), each word offers a *key* and a "
        "*value*. How well a query fits a key decides how much of the value is taken. First by hand, with three words of two numbers.",
        "# 어텐션: 세 단어에서 모델 전체까지\n\n단어마다 질문(*쿼리*)이 있고, 단어마다 *키*와 *값*을 내놓습니다. 쿼리가 키와 얼마나 맞는지에 따라 "
        "값을 얼마나 가져올지 정해집니다. 먼저 두 숫자로 된 세 단어를 손으로 계산해 봅시다.",
    ),
    """import numpy as np

words = ["the", "cat", "sat"]
q = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
k = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
v = np.array([[1, 0], [0, 1], [5, 5]], np.float32)

scores = q @ k.T                      # every query with every key
scaled = scores / np.sqrt(2)          # so that scores do not grow with the dimension
weights = np.exp(scaled) / np.exp(scaled).sum(1, keepdims=True)
print(scores[2], scaled[2].round(3), weights[2].round(3))
print((weights @ v)[2].round(3))""",
    (
        "*sat* fits itself best: its scores are 1, 1 and 2, scaled 0.707, 0.707 and 1.414, and its weights 0.248, 0.248 and 0.503. "
        "The output is the mean of the values by these weights: 2.766 in both places.\n\nThe engine gives the same numbers.",
        "*sat*은 자기 자신과 가장 잘 맞습니다. 점수는 1, 1, 2이고 나누면 0.707, 0.707, 1.414이며 가중치는 0.248, 0.248, 0.503입니다. "
        "출력은 이 가중치로 값을 평균한 것으로 두 자리 모두 2.766입니다.\n\n엔진도 같은 수를 냅니다.",
    ),
    """import foveal

print(foveal.attention(q, k, v)[2].round(3))
foveal.Attention().weights(q[None, None], k[None, None])[0, 0].round(3)""",
    (
        "A model that writes must not look ahead: word *i* sees the words up to *i*. The first word then sees itself alone, with weight 1.",
        "글을 쓰는 모델은 앞을 내다보면 안 됩니다. *i*번째 단어는 *i*번째까지만 봅니다. 그러면 첫 단어는 가중치 1로 자기 자신만 봅니다.",
    ),
    "foveal.Attention(causal=True).weights(q[None, None], k[None, None])[0, 0].round(3)",
    (
        "## Long texts\n\nThe matrix of weights of 8,192 words has 67 million cells for every head. It is never made: what is kept of each "
        "row is one number, the log-sum-exp of its scores, and any weight follows from it, exactly, when you look.",
        "## 긴 글\n\n단어가 8,192개면 가중치 행렬은 헤드마다 6,700만 칸입니다. 이 행렬은 만들지 않습니다. 행마다 점수의 로그합지수 하나만 남기고, "
        "어떤 가중치든 볼 때 그 수에서 정확히 다시 계산합니다.",
    ),
    """rng = np.random.default_rng(0)
x = rng.standard_normal((1, 4, 8192, 32), np.float32)
attention = foveal.Attention(causal=True)
out, lse = attention.forward(x, x, x)
tile = attention.tile(x, x, lse, head=2, rows=(5000, 5004), cols=(4996, 5004))
print(out.shape, lse.shape, tile.shape)
print(attention.map(x, x, lse, head=2, size=(4, 4)).round(3))""",
    (
        "The picture of 4 × 4 pixels shows the largest weight of each part. Above the diagonal, in the future, all is 0.0.",
        "4 × 4 픽셀 그림은 각 부분에서 가장 큰 가중치를 보여 줍니다. 대각선 위, 곧 미래는 모두 0.0입니다.",
    ),
    (
        "## PyTorch\n\n`foveal.torch.scaled_dot_product_attention` takes what PyTorch's own function takes, and has gradients.",
        "## PyTorch\n\n`foveal.torch.scaled_dot_product_attention`은 PyTorch의 함수와 같은 인자를 받고 기울기도 계산합니다.",
    ),
    """import torch
import foveal.torch

torch.manual_seed(0)
a, b = (torch.randn(1, 2, 64, 16) for _ in range(2))
ours, theirs = a.clone().requires_grad_(), a.clone().requires_grad_()
foveal.torch.scaled_dot_product_attention(ours, b, b, is_causal=True).sum().backward()
torch.nn.functional.scaled_dot_product_attention(theirs, b, b, is_causal=True).sum().backward()
torch.allclose(ours.grad, theirs.grad, atol=1e-5)""",
    (
        "## A real model, watched\n\nMiniLM reads a sentence. Within `foveal.watch` every attention of the model leaves queries, keys and "
        "the log-sum-exp behind: memory that grows with the tokens, not with their square.",
        "## 실제 모델 들여다보기\n\nMiniLM이 문장을 읽습니다. `foveal.watch` 안에서는 모델의 모든 어텐션이 쿼리, 키, 로그합지수를 남깁니다. "
        "메모리는 토큰 수에 비례할 뿐 제곱으로 늘지 않습니다.",
    ),
    """import os
from transformers import AutoModel, AutoTokenizer

name = os.environ.get("MINILM", "sentence-transformers/all-MiniLM-L6-v2")
tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModel.from_pretrained(name)

with foveal.watch(model, tokenizer=tokenizer) as trace, torch.no_grad():
    model(**tokenizer("The bank of the river was steep.", return_tensors="pt"))

print(trace.tokens)
for key, weight in trace.top(layer=2, head=5, count=3)[2]:   # what "bank" looks at
    print(trace.tokens[key], round(weight, 3))""",
    (
        "What each head does, in numbers: how sure it is, and how much it leaves to the word before.",
        "헤드마다 하는 일을 숫자로 봅니다. 얼마나 확신하는지, 바로 앞 단어에 얼마나 주는지입니다.",
    ),
    """scores = sorted(trace.head_scores(), key=lambda s: -s["previous"])[:3]
for s in scores:
    print(s["layer"], s["head"], round(s["previous"], 2), round(s["confidence"], 2))""",
    (
        "All layers and heads, to explore: zoom, switch heads, follow one token.",
        "모든 층과 헤드를 탐색합니다. 확대하고, 헤드를 바꾸고, 토큰 하나를 따라가 보십시오.",
    ),
    "trace.show()",
]


def notebook(language: str) -> nbformat.NotebookNode:
    cells = []
    for number, cell in enumerate(CELLS):
        if isinstance(cell, tuple):
            made = nbformat.v4.new_markdown_cell(cell[language == "ko"])
        else:
            made = nbformat.v4.new_code_cell(cell.replace("trace.show()", f'trace.show(language="{language}")'))
        made["id"] = f"cell-{number}"
        cells.append(made)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def execute(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    if MINILM.exists():
        os.environ["MINILM"] = str(MINILM)
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    NotebookClient(book, timeout=600, kernel_name="python3").execute()
    for cell in book.cells:
        # What libraries say about themselves changes from day to day.
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
            cell.metadata = nbformat.NotebookNode()
    book.metadata.pop("widgets", None)
    return book


def printed(book: nbformat.NotebookNode) -> list[str]:
    """What the cells print, as text; the page is compared by its presence."""
    texts = []
    for cell in book.cells:
        parts = []
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            parts.append("<page>" if "text/html" in data else output.get("text") or data.get("text/plain", ""))
        # A kernel sends what a cell prints in as many pieces as it likes.
        texts.append("".join(parts))
    return [text for text in texts if text]


def check_numbers(book: nbformat.NotebookNode) -> None:
    """Every decimal number of the texts is one that a cell has printed."""
    numbers = set(re.findall(r"\d+\.\d+", " ".join(printed(book)))) | {"0.0"}
    for cell in book.cells:
        if cell.cell_type == "markdown":
            for number in re.findall(r"(?<![\w.])\d+\.\d+", cell.source):
                assert any(number == x or number == x.rstrip("0") for x in numbers), f"{number} is printed nowhere"


def check(language: str) -> None:
    """Runs a notebook again; it must print what it says."""
    kept = nbformat.read(HERE / f"attention.{language}.ipynb", 4)
    assert [c.source for c in kept.cells] == [c.source for c in notebook(language).cells], "write the notebooks anew"
    check_numbers(kept)
    again = printed(execute(notebook(language)))
    assert printed(kept) == again, (printed(kept), again)


def main() -> None:
    for language in ("en", "ko"):
        if "--check" in sys.argv:
            check(language)
            continue
        book = execute(notebook(language))
        check_numbers(book)
        nbformat.write(book, HERE / f"attention.{language}.ipynb")
        print(f"attention.{language}.ipynb:", *printed(book), sep="\n")


if __name__ == "__main__":
    main()
