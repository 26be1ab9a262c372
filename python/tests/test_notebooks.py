"""The notebooks print what they say they print."""

import importlib.util
import pathlib

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("transformers")
PATH = pathlib.Path(__file__).parents[2] / "notebooks" / "write.py"
spec = importlib.util.spec_from_file_location("write_notebooks", PATH)
write = importlib.util.module_from_spec(spec)
spec.loader.exec_module(write)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_notebook(language):
    if not write.MINILM.exists():
        pytest.skip("`make data` has not fetched MiniLM")
    write.check(language)
