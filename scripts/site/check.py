"""Opens the site of the lessons in headless Chromium, and uses it as a reader would.

    python3 scripts/site/check.py SITE LEARN.json [--chromium PATH] [--shots FOLDER] [--only NAME]

Needs the Python package `playwright` and a Chromium. Prints `N passed, N failed`.
"""

import argparse
import json
import pathlib
import shutil
import sys
import traceback

from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
LANGUAGES = ("en", "ko")
PHONE, DESK = (390, 844), (1280, 900)
MOST_BYTES = 15e6
# Chapters with something to try.
PARTS = {"02-by-hand": "drag", "03-scale": "scale", "04-masks": "mask", "07-positions": "positions", "10-what-heads-do": "heads"}


class Opened:
    """A page, and everything that it says to the console or asks of the network."""

    def __init__(self, browser, site, name, language="en", scheme="light", size=DESK, touch=False):
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, has_touch=touch)
        self.page, self.complaints, self.outside = self.context.new_page(), [], []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self.outside.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None)
        self.page.on("requestfailed", lambda r: self.complaints.append(f"{r.url}: {r.failure}"))
        self.page.goto((site / "lessons" / language / f"{name}.html").resolve().as_uri())

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.context.close()
        if kind is None:
            assert not self.complaints, self.complaints
            assert not self.outside, self.outside

    def part(self, name):
        box = self.page.locator(f'[data-try="{name}"]').first
        box.scroll_into_view_if_needed()
        assert box.get_attribute("data-ready") == "yes"
        return box


def pages(site):
    return sorted(path for path in site.rglob("*.html"))


def links_pictures_and_formulas(browser, site, _):
    """Every link leads to a page and a place that are there, every picture is drawn, no formula is left as text."""
    context = browser.new_context()
    page = context.new_page()
    found, ids = [], {}
    for path in pages(site):
        page.goto(path.resolve().as_uri())
        ids[path.resolve()] = set(page.evaluate("[...document.querySelectorAll('[id]')].map(n => n.id)"))
        assert "�" not in page.content(), path
        broken = page.evaluate("Promise.all([...document.images].map(i => (i.loading = 'eager', i.decode()).then(() => '', () => i.src))).then(x => x.filter(Boolean))")
        assert not broken, (path, broken)
        left = page.evaluate("[...document.querySelectorAll('main')].some(n => { const c = n.cloneNode(true); c.querySelectorAll('pre, code, .katex, script').forEach(x => x.remove()); return /\\$\\$|\\\\(frac|mathrm|sum)/.test(c.textContent); })")
        assert not left and not page.locator(".katex-error").count(), f"{path}: a formula is not rendered"
        found += [(path, link) for link in page.evaluate("[...document.links].map(a => a.getAttribute('href'))")]
    for path, link in found:
        if link.startswith(("http:", "https:")):
            continue
        target, _, fragment = link.partition("#")
        target = (path.parent / target).resolve() if target else path.resolve()
        assert target.exists(), f"{path}: {link} leads nowhere"
        assert not fragment or fragment in ids[target], f"{path}: {link}: no such place"
    formulas = page.evaluate("0")
    page.goto((site / "lessons/en/02-by-hand.html").resolve().as_uri())
    formulas = page.locator(".katex").count()
    assert formulas >= 3, formulas
    context.close()


def it_is_small(_browser, site, _):
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print(f"        {size / 1e6:.1f} MB, {len(pages(site))} pages")
    assert size <= MOST_BYTES, size


def languages_switch(browser, site, _):
    with Opened(browser, site, "04-masks") as it:
        it.page.click("header a[lang=ko]")
        assert it.page.url.endswith("lessons/ko/04-masks.html") and "마스크" in it.page.inner_text("h1")
        it.page.click("header a[lang=en]")
        assert it.page.url.endswith("lessons/en/04-masks.html")


def answers_are_hidden_until_asked(browser, site, _):
    with Opened(browser, site, "02-by-hand") as it:
        answer = it.page.locator("#check ~ ol details").first
        assert not answer.evaluate("d => d.open")
        answer.locator("summary").click()
        assert answer.evaluate("d => d.open")


def nothing_is_wider_than_a_phone(browser, site, _):
    for language in LANGUAGES:
        for scheme in ("light", "dark"):
            for name in [*PARTS, "exercises", "00-preface"]:
                with Opened(browser, site, name, language, scheme, PHONE, touch=True) as it:
                    wide = it.page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= PHONE[0], f"{language} {name}: {wide} pixels wide"


def weights(box):
    return [float(x) for x in box.get_attribute("data-weights").split()]


def vectors_are_dragged(browser, site, _):
    for language in LANGUAGES:
        with Opened(browser, site, "02-by-hand", language) as it:
            box = it.part("drag")
            before = weights(box)
            assert abs(sum(before) - 1) < 1e-5
            # softmax of q·k/√2 for q = (1.5, 1), by hand.
            import math
            q, keys = (1.5, 1), [(2, 0.5), (-0.5, 2), (-1.5, -1)]
            powers = [math.exp((q[0] * x + q[1] * y) / math.sqrt(2)) for x, y in keys]
            assert all(abs(w - p / sum(powers)) < 1e-5 for w, p in zip(before, powers)), before
            dot = box.locator('[data-dot="q"] .ink').bounding_box()
            x, y = dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2
            it.page.mouse.move(x, y)
            it.page.mouse.down()
            it.page.mouse.move(x - 120, y - 20, steps=5)
            it.page.mouse.up()
            after = weights(box)
            assert after[1] > before[1] + 0.2 and abs(sum(after) - 1) < 1e-5, (before, after)
            # With keys alone, to the other side.
            box.locator('[data-dot="k2"]').focus()
            for _ in range(10):
                it.page.keyboard.press("ArrowUp")
            assert weights(box) != after


def a_mask_is_drawn(browser, site, _):
    for language in LANGUAGES:
        with Opened(browser, site, "04-masks", language) as it:
            box = it.part("mask")
            cell = lambda i, j: box.locator(f'[data-cell="{i},{j}"]')
            assert cell(0, 1).inner_text() == "·" and cell(0, 0).inner_text() == "1.00"
            assert box.locator('[data-value="causal"]').get_attribute("aria-pressed") == "true"
            sums = lambda: box.locator("td.sum").all_inner_texts()
            assert sums() == ["1.00"] * 6
            box.locator('[data-value="inverted"]').click()
            assert sums() == ["1.00"] * 5 + ["0.00"] and "NaN" in box.locator(".note").inner_text()
            assert "NaN" not in box.locator("table").inner_text()
            box.locator('[data-value="none"]').click()
            first, last = cell(2, 0).bounding_box(), cell(2, 3).bounding_box()
            it.page.mouse.move(first["x"] + 9, first["y"] + 9)
            it.page.mouse.down()
            it.page.mouse.move(last["x"] + 9, last["y"] + 9, steps=12)
            it.page.mouse.up()
            assert [cell(2, j).inner_text() == "·" for j in range(6)] == [True] * 4 + [False] * 2
            cell(0, 0).focus()
            for key in ("ArrowDown", "ArrowRight", "Space"):
                it.page.keyboard.press(key)
            assert cell(1, 1).inner_text() == "·" and cell(1, 1).get_attribute("aria-pressed") == "false"
            assert sums() == ["1.00"] * 6


def the_scale_is_turned_off(browser, site, _):
    for language in LANGUAGES:
        with Opened(browser, site, "03-scale", language) as it:
            box = it.part("scale")
            most = lambda: float(box.get_attribute("data-most"))
            slider = box.locator("input[type=range]")
            small = most()
            slider.focus()
            it.page.keyboard.press("End")
            assert box.locator("label output").inner_text() == "1024"
            scaled = most()
            assert scaled < 0.7, (small, scaled)
            box.locator("input[type=checkbox]").click()
            assert most() > 0.99, most()


def a_token_is_moved(browser, site, _):
    for language in LANGUAGES:
        with Opened(browser, site, "07-positions", language) as it:
            box = it.part("positions")
            change = lambda: float(box.get_attribute("data-change"))
            box.locator('[data-word="0"] [data-move="→"]').click()
            assert box.locator(".word b").all_inner_texts() == ["bites", "dog", "the", "man"]
            assert change() < 1e-4, "without positions nothing changes"
            seen = {}
            for way in ("sines", "rope", "alibi", "causal"):
                box.locator(f'[data-value="{way}"]').click()
                seen[way] = change()
            assert all(value > 1e-3 for value in seen.values()), seen
            # The whole sentence the other way round: ALiBi does not see that.
            for word, times in ((3, 3), (2, 2), (1, 1)):
                for _ in range(times):
                    button = box.locator(f'[data-word="{word}"] [data-move="←"]')
                    if button.is_enabled():
                        button.click()
            order = box.locator(".word b").all_inner_texts()
            box.locator('[data-value="alibi"]').click()
            assert (order == ["man", "the", "bites", "dog"]) == (change() < 1e-4), (order, change())


def heads_are_switched_off(browser, site, learned):
    data = learned["switched_off"]
    for language in LANGUAGES:
        with Opened(browser, site, "10-what-heads-do", language) as it:
            box = it.part("heads")
            assert box.locator("button.cell").count() == data["layers"] * (data["heads"] + 1)
            worst = max((w for w in data["without"] if w["head"] is not None), key=lambda w: w["loss"])
            box.locator(f'[data-head="{worst["layer"]}.{worst["head"]}"]').click()
            assert f'{worst["loss"]:.3f}' in box.locator(".note").inner_text()
            shown = box.locator(".side-by-side .grow").nth(1).locator("output").all_inner_texts()
            assert shown == [f"{p:.3f}" for _, p in worst["next"]], shown
            it.page.keyboard.press("Enter")
            assert box.locator(".side-by-side .grow").count() == 1, "on again"


def typed(answer, expected):
    kind, value = next(iter(answer.items()))
    if kind == "numbers":
        return " ".join("nan" if x is None else f'{x:.{expected["numbers"]["decimals"]}f}' for x in value)
    return str(value) if kind == "choice" else ".".join(map(str, value))


def exercises_judge_as_the_program_does(browser, site, learned):
    for language in LANGUAGES:
        with Opened(browser, site, "exercises", language) as it:
            told = 0
            for exercise in learned["exercises"]:
                expected = exercise["expected"]
                if "code" in expected:
                    assert it.page.locator(f'#{exercise["name"]}').count() == 1
                    continue
                box = it.page.locator(f'[data-exercise="{exercise["name"]}"]')
                answer = lambda text: (
                    box.locator(f'button[data-value="{text}"]').click() if "choice" in expected
                    else (box.locator("input").fill(text), box.locator("button").click())
                )
                verdict = lambda: box.locator(".verdict")
                for mistake in exercise["mistakes"]:
                    answer(typed(mistake["answer"], expected))
                    assert verdict().inner_text() == f'✗ {mistake["why"][language]}', (exercise["name"], mistake["name"], verdict().inner_text())
                    told += 1
                right = {"choice": expected["choice"]["right"]} if "choice" in expected else {"head": expected["head"]["right"][0]} if "head" in expected else expected
                answer(typed(right if "numbers" not in right else {"numbers": expected["numbers"]["values"]}, expected))
                assert verdict().inner_text() == f'✓ {exercise["explanation"][language]}', exercise["name"]
            assert told >= 100, told


TESTS = [
    links_pictures_and_formulas, it_is_small, languages_switch, answers_are_hidden_until_asked, nothing_is_wider_than_a_phone,
    vectors_are_dragged, a_mask_is_drawn, the_scale_is_turned_off, a_token_is_moved, heads_are_switched_off,
    exercises_judge_as_the_program_does,
]


def shots(browser, site, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in PARTS.items():
        for language, scheme, size in (("en", "light", DESK), ("ko", "dark", PHONE)):
            with Opened(browser, site, name, language, scheme, size) as it:
                it.part(part)
                it.page.screenshot(path=folder / f"{part}-{language}-{scheme}.png")
    for language, scheme, size in (("en", "dark", DESK), ("ko", "light", PHONE)):
        with Opened(browser, site, "exercises", language, scheme, size) as it:
            it.page.locator("#mask-1").scroll_into_view_if_needed()
            it.page.screenshot(path=folder / f"exercises-{language}-{scheme}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=pathlib.Path)
    parser.add_argument("learned", type=pathlib.Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--shots", type=pathlib.Path, help="also write screenshots into this folder")
    parser.add_argument("--only", default="", help="tests whose names hold this")
    options = parser.parse_args()
    learned, failed = json.loads(options.learned.read_text()), 0
    tests = [test for test in TESTS if options.only in test.__name__]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=FLAGS)
        for test in tests:
            try:
                test(browser, options.site, learned)
                print(f"ok      {test.__name__}")
            except Exception:
                failed += 1
                traceback.print_exc()
                print(f"FAILED  {test.__name__}")
        if options.shots:
            shots(browser, options.site, options.shots)
        browser.close()
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
