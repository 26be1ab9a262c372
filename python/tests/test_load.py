"""Models of our own, from Python; the examples of the documentation."""

import doctest
import os
import pathlib
import runpy

import numpy as np
import pytest

import foveal
from foveal import _foveal

CACHE = pathlib.Path(os.environ.get("FOVEAL_TEST_CACHE", pathlib.Path.home() / ".cache" / "foveal-test"))


def test_a_language_model():
    model = foveal.load("shakespeare")
    assert "shakespeare" in repr(model)
    text = "ROMEO: But soft, what light"
    assert model.decode(model.encode(text)) == text
    logits = model.run(text)
    pieces = list(model.generate(text, 12))
    again = model.generate(text, 12)
    assert "".join(pieces) == "".join(again) and pieces
    assert logits.ndim == 1 and model.decode([int(logits.argmax())]).strip() in "".join(pieces)
    sampled = ["".join(model.generate(text, 12, temperature=1.0, seed=seed)) for seed in (1, 1, 2)]
    assert sampled[0] == sampled[1] != sampled[2]
    stopped = model.generate(text, 1000)
    next(stopped)
    del stopped  # whoever stops listening stops the writing
    with pytest.raises(foveal.Error):
        list(model.generate("", 5, temperature=-1.0))


def test_its_trace(tmp_path):
    trace = foveal.read("shakespeare", "To be or not to be")
    weights = trace.weights(2, 1)
    assert weights.shape == (len(trace.tokens),) * 2 and np.allclose(weights.sum(1), 1, atol=1e-5)
    assert np.all(np.triu(weights, 1) == 0)
    arrays = trace.arrays(2)
    # Heads of keys serve groups of heads of queries.
    group = arrays["k"].shape[1] * 1 // arrays["q"].shape[1]
    scores = arrays["q"][0, 1] @ arrays["k"][0, group].T / np.sqrt(arrays["q"].shape[-1])
    row = np.exp(scores[-1] - scores[-1].max())
    assert np.abs(row / row.sum() - weights[-1]).max() < 1e-5
    assert trace.rollout().shape == weights.shape and trace.norms(2, 1).shape == weights.shape
    assert len(trace.head_scores()) == len(trace.layers) * trace.shape(0)[1]
    trace.save(tmp_path / "x.html")
    assert "To be or not to be" in (tmp_path / "x.html").read_text()
    assert trace.predictions[0][1] > trace.predictions[1][1]


def test_a_translator():
    model = foveal.load("translate-en-ko")
    text = model.translate("The student reads two books.")
    trace = foveal.read(model, "The student reads two books.")
    assert trace.written == text and trace.kinds == ["cross", "decoder", "encoder"]
    _, heads, queries, keys = trace.shape(0, "cross")
    assert trace.weights(0, 0, kind="cross").shape == (queries, keys)
    assert len(trace.html()) > 100_000
    with pytest.raises(foveal.Error, match="sentence"):
        model.embed(["a"])


def test_a_sentence_encoder():
    folders = [path for path in CACHE.rglob("config.json") if "minilm" in str(path).lower()]
    if not folders:
        pytest.skip("`make data` has not fetched MiniLM")
    model = foveal.load(str(folders[0].parent))
    a, b, c = model.embed(["A cat sits outside.", "A cat is sitting outdoors.", "Interest rates rose again."])
    cosine = lambda x, y: x @ y / np.linalg.norm(x) / np.linalg.norm(y)  # noqa: E731
    assert cosine(a, b) > cosine(a, c) + 0.2


def test_the_lessons(capsys):
    runpy.run_path(str(pathlib.Path(__file__).parents[1] / "examples" / "lessons.py"))
    assert "looks at the token before" in capsys.readouterr().out


@pytest.mark.parametrize("module", ["foveal", "foveal.torch"])
def test_examples(module):
    if module == "foveal.torch":
        pytest.importorskip("torch")
    import importlib

    results = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0 and results.failed == 0


@pytest.mark.parametrize("name", ["Attention", "Pattern", "KvCache", "Rope"])
def test_examples_of_the_extension(name):
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    found = [test for test in finder.find(getattr(_foveal, name), name, module=False, globs={}) if test.examples]
    assert found
    for test in found:
        runner.run(test)
    assert runner.failures == 0
