"""Opens generated pages in headless Chromium and uses them as a person would.

    python3 check.py FOLDER [--chromium /usr/bin/chromium] [--shots FOLDER]

FOLDER holds what `cargo run -p foveal-view --example gallery -- FOLDER pages` writes. Needs the Python package
`playwright` and a Chromium (Debian's package `chromium`); nothing is downloaded. Prints `N passed, N failed`.
"""

import argparse
import pathlib
import re
import shutil
import sys
import time
import traceback
import xml.etree.ElementTree as ET

from playwright.sync_api import sync_playwright

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]


class Open:
    """A page with everything that it says to the console or asks of the network on record."""

    def __init__(self, browser, path, scheme="light"):
        self.context = browser.new_context(
            viewport={"width": 1280, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.address = path.resolve().as_uri()
        start = time.monotonic()
        self.page.goto(self.address)
        self.page.wait_for_selector("body[data-ready]")
        self.seconds = time.monotonic() - start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def settled(self, action):
        """Does something that fetches a matrix, and waits until it is drawn."""
        before = self.page.get_attribute("body", "data-ready")
        action()
        self.page.wait_for_function("before => document.body.dataset.ready !== before", arg=before)
        self.page.wait_for_timeout(50)

    def pixels(self):
        return self.page.eval_on_selector("#canvas", "canvas => canvas.toDataURL()")

    def hover(self, x, y):
        """Points at a part of the canvas, in fractions of its size, and returns what the tip says."""
        box = self.page.locator("#canvas").bounding_box()
        self.page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y)
        self.page.wait_for_timeout(60)
        return self.page.inner_text("#tip") if self.page.is_visible("#tip") else ""

    def download(self, selector):
        with self.page.expect_download() as waiting:
            self.page.click(selector)
        return pathlib.Path(waiting.value.path()).read_bytes(), waiting.value.suggested_filename

    def is_quiet(self):
        assert not self.complaints, self.complaints
        outside = [url for url in self.requests if url != self.address and not url.startswith(("data:", "blob:"))]
        assert not outside, outside


def hover_shows_the_value(browser, folder):
    with Open(browser, folder / "page-small.html") as it:
        tip = it.hover(0.3, 0.5)
        assert re.search(r"→.*\d", tip), tip
        it.page.mouse.move(5, 5)
        it.page.wait_for_timeout(60)
        assert not it.page.is_visible("#tip")
        it.is_quiet()


def layer_head_and_measure_switch(browser, folder):
    with Open(browser, folder / "page-small.html") as it:
        seen = {it.pixels()}
        for action in (
            lambda: it.page.select_option("#head", "2"),
            lambda: it.page.select_option("#layer", "3"),
            lambda: it.page.click("#head-more"),
            lambda: it.page.select_option("#head", "-1"),
            lambda: it.page.click("#measure >> text=Norm"),
            lambda: it.page.click("#measure >> text=Rollout"),
            lambda: it.page.click("#scale >> text=Log"),
            lambda: it.page.click("#view >> text=Lines"),
        ):
            it.settled(action)
            now = it.pixels()
            assert now not in seen, "the picture did not change"
            seen.add(now)
        it.is_quiet()


def kinds_switch(browser, folder):
    with Open(browser, folder / "page-translation.html") as it:
        assert it.page.locator("html").get_attribute("lang") == "ko"
        first = it.pixels()
        it.settled(lambda: it.page.click("#kind >> text=교차"))
        assert it.pixels() != first and it.page.is_visible("#queries")
        it.page.click("#queries span:nth-child(3)")
        it.page.wait_for_timeout(60)
        assert it.page.locator("#strongest li").count() > 2
        it.is_quiet()


def a_pinned_token_stays(browser, folder):
    with Open(browser, folder / "page-small.html") as it:
        it.hover(0.3, 0.45)
        box = it.page.locator("#canvas").bounding_box()
        it.page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.45)
        it.page.wait_for_timeout(60)
        title = it.page.inner_text("#reading-title")
        assert it.page.locator("#strongest li").count() > 3 and it.page.locator("#text .pinned").count() == 1
        it.settled(lambda: it.page.select_option("#head", "4"))
        assert it.page.inner_text("#reading-title") == title
        it.hover(0.3, 0.85)
        assert it.page.inner_text("#reading-title") == title
        it.page.keyboard.press("Escape")
        it.page.mouse.move(5, 5)
        it.page.wait_for_timeout(60)
        assert it.page.locator("#text .pinned").count() == 0 and it.page.inner_text("#reading-title") != title
        it.is_quiet()


def words_merge_and_special_tokens_hide(browser, folder):
    with Open(browser, folder / "page-small.html") as it:
        texts = lambda: [t.strip() for t in it.page.locator("#text span").all_inner_texts()]
        assert len(texts()) == 12
        it.page.click("#text span:nth-child(3)")
        it.settled(lambda: it.page.check("#merge"))
        assert "unbelievable" in texts() and len(texts()) == 9
        # The pinned token is now the word that it belongs to, and its keys still sum to 1.
        assert "unbelievable" in it.page.inner_text("#reading-title")
        total = sum(float(v) for v in it.page.locator("#strongest b").all_inner_texts())
        assert abs(total - 1) < 0.02, total
        it.settled(lambda: it.page.check("#hide"))
        assert len(texts()) == 7 and "[CLS]" not in texts()
        it.is_quiet()


def saves_svg_and_png(browser, folder):
    for page, vector in (("page-small.html", True), ("page-large.html", False)):
        for view in ("Map", "Lines"):
            with Open(browser, folder / page) as it:
                if view == "Lines":
                    it.settled(lambda: it.page.click("#view >> text=Lines"))
                svg, name = it.download("#save-svg")
                root = ET.fromstring(svg)
                assert root.tag.endswith("svg") and name.endswith(".svg") and float(root.get("width")) > 300
                text = "".join(root.itertext())
                assert "Query" in text and "Key" in text and (not vector or "believ" in text)
                png, name = it.download("#save-png")
                assert png.startswith(b"\x89PNG") and name.endswith(".png") and len(png) > 5000
                it.is_quiet()


def keys_alone_are_enough(browser, folder):
    with Open(browser, folder / "page-small.html") as it:
        it.page.focus("#canvas")
        for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
            it.page.keyboard.press(key)
            it.page.wait_for_timeout(40)
        assert "→" in it.page.inner_text("#tip")
        assert it.page.locator("#text .pinned").count() == 1
        it.settled(lambda: it.page.keyboard.press("."))
        assert it.page.input_value("#head") == "1"
        it.settled(lambda: it.page.keyboard.press(">"))
        assert it.page.input_value("#layer") == "1"
        it.page.focus("#text span:nth-child(1)")
        it.page.keyboard.press("ArrowRight")
        it.page.keyboard.press("Enter")
        it.page.wait_for_timeout(60)
        assert "pinned" in it.page.get_attribute("#text span:nth-child(2)", "class")
        it.is_quiet()


def themes_and_languages(browser, folder):
    paper = "getComputedStyle(document.body).backgroundColor"
    with Open(browser, folder / "page-small.html", "dark") as it:
        dark = it.page.evaluate(paper)
        for _ in range(2):
            it.settled(lambda: it.page.click("#theme"))
        assert it.page.evaluate(paper) == dark
        it.settled(lambda: it.page.click("#theme"))
        it.settled(lambda: it.page.click("#theme"))
        assert it.page.evaluate(paper) != dark
        it.settled(lambda: it.page.click("#language"))
        assert "헤드" in it.page.inner_text("#controls")
        it.is_quiet()


def large_is_small_enough_and_fast(browser, folder):
    size = (folder / "page-large.html").stat().st_size
    assert size <= 12_000_000, size
    with Open(browser, folder / "page-large.html") as it:
        print(f"    512 tokens, 12 × 12 heads: {size / 1e6:.1f} MB, ready in {it.seconds:.2f} s", end="")
        start = time.monotonic()
        for layer in range(1, 5):
            it.settled(lambda layer=layer: it.page.select_option("#layer", str(layer)))
        print(f", a layer in {(time.monotonic() - start) / 4:.2f} s", end="")
        frame = it.page.evaluate(
            """async () => {
              const canvas = document.getElementById("canvas"), box = canvas.getBoundingClientRect(), count = 30;
              const start = performance.now();
              for (let k = 0; k < count; k++) {
                canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 200 + k * 3, clientY: box.top + 300, bubbles: true }));
                await new Promise(requestAnimationFrame);
              }
              return (performance.now() - start) / count;
            }"""
        )
        print(f", a hover in {frame:.0f} ms")
        it.hover(0.4, 0.5)
        before = it.pixels()
        for _ in range(10):
            it.page.mouse.wheel(0, -240)
            it.page.wait_for_timeout(30)
        assert it.pixels() != before
        it.is_quiet()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--shots", type=pathlib.Path, help="also write screenshots, light and dark, into this folder")
    options = parser.parse_args()
    tests = [
        hover_shows_the_value, layer_head_and_measure_switch, kinds_switch, a_pinned_token_stays,
        words_merge_and_special_tokens_hide, saves_svg_and_png, keys_alone_are_enough, themes_and_languages,
        large_is_small_enough_and_fast,
    ]
    failed = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=FLAGS)
        for test in tests:
            try:
                test(browser, options.folder)
                print(f"ok      {test.__name__}")
            except Exception:
                failed += 1
                traceback.print_exc()
                print(f"FAILED  {test.__name__}")
        for page in sorted(options.folder.glob("page-*.html")) if options.shots else []:
            for scheme in ("light", "dark"):
                with Open(browser, page, scheme) as it:
                    it.page.screenshot(path=options.shots / f"{page.stem}-{scheme}.png", full_page=True)
        browser.close()
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
