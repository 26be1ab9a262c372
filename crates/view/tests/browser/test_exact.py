"""Every number that a page prints is the engine's: random cells, against what the gallery has computed and written beside it."""

import json
import random

from opened import Opened

# Asks the page for its table at a place, as a reader would, and gives back what it prints.
READ = """([rows, cols]) => [...document.querySelectorAll("#table tbody tr")].slice(...rows)
  .map((row) => [...row.querySelectorAll("td")].slice(...cols).map((cell) => cell.textContent))"""


def read(it, fragment, shows, count):
    """Goes to a place by its link, and reads the table there."""
    it.page.evaluate("fragment => (location.hash = fragment)", fragment)
    it.page.wait_for_selector(f"#table[data-shows='{shows}']")
    return it.page.evaluate(READ, [[0, count], [0, count]])


def printed_numbers_are_the_engines(browser, folder):
    for name in ("exact", "half", "steep"):
        cells = json.loads((folder / f"page-{name}.json").read_text())
        digits = 2 if name == "half" else 4
        checked = 0
        with Opened(browser, folder / f"page-{name}.html", fragment="view=table&unit=tokens") as it:
            for place in cells:
                # A table shows 40 of the 200 tokens, and ends with them.
                top, left = min(place["top"], 160), min(place["left"], 160)
                fragment = f"view=table&unit=tokens&layer={place['layer']}&head={place['head']}&at={top},{left},{top + 40},{left + 40}"
                shown = read(it, fragment, f"{place['layer']}.{place['head']}.{top}.{left}", 40)
                for k, (i, j, exact) in enumerate(place["cells"]):
                    text = shown[i + place["top"] - top][j + place["left"] - left]
                    if text.startswith("<"):
                        assert exact < 10**-digits * 1.5, (name, place, k, text, exact)
                    elif "e" in text:
                        assert abs(float(text) - exact) <= 0.11 * abs(exact) + 1e-12, (name, place, k, text, exact)
                    else:
                        assert abs(float(text) - exact) <= 1.5 * 10**-digits, (name, place, k, text, exact)
                    checked += 1
            it.is_quiet()
        assert checked >= 1000, checked


def pages_of_models_print_their_weights(browser, folder):
    """The models inside the program: what `foveal see` writes as a page, against what it writes as JSON."""
    pages = sorted(folder.glob("model-*.html"))
    assert len(pages) >= 2, "make browser-test writes them with foveal see"
    chance = random.Random(5)
    for page in pages:
        figures = json.loads(page.with_suffix(".json").read_text())
        checked = 0
        with Opened(browser, page, fragment="view=table&unit=tokens") as it:
            for head in chance.sample(figures["heads"], min(20, len(figures["heads"]))):
                fragment = f"view=table&unit=tokens&layer={head['layer']}&head={head['head']}"
                shown, values = read(it, fragment, f"{head['layer']}.{head['head']}.0.0", 40), head["values"]
                for _ in range(50):
                    i, j = chance.randrange(min(40, len(values))), chance.randrange(min(40, len(values[0])))
                    error = abs(float(shown[i][j]) - values[i][j])
                    assert error <= (0.11 * values[i][j] if "e" in shown[i][j] else 1.5e-4), (page.name, head["layer"], i, j, shown[i][j], values[i][j])
                    checked += 1
            it.is_quiet()
        assert checked >= 50, checked


TESTS = [printed_numbers_are_the_engines, pages_of_models_print_their_weights]
