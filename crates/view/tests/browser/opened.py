"""A page in headless Chromium, with everything that it says to the console or asks of the network on record."""

import pathlib
import time

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]
SEEN = "try { localStorage.setItem('foveal-tour', 'seen') } catch {}"


class Opened:
    def __init__(self, browser, address, *, scheme="light", size=(1280, 900), fragment="", tour=False, touch=False):
        if isinstance(address, pathlib.Path):
            address = address.resolve().as_uri()
        self.context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, accept_downloads=True, has_touch=touch
        )
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        if not tour:
            self.page.add_init_script(SEEN)
        self.address = address
        start = time.monotonic()
        self.page.goto(address + (f"#{fragment}" if fragment else ""))
        self.ready()
        self.seconds = time.monotonic() - start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def ready(self):
        """Waits until what is asked for is drawn, and drawn again."""
        self.page.wait_for_selector("body[data-ready=yes]")
        turn = self.page.get_attribute("body", "data-turn")
        self.page.wait_for_timeout(60)
        if self.page.get_attribute("body", "data-turn") != turn:
            self.page.wait_for_selector("body[data-ready=yes]")

    def settled(self, action):
        """Does something that changes the picture, and waits until that is drawn."""
        before = self.page.get_attribute("body", "data-turn")
        action()
        self.page.wait_for_function("before => document.body.dataset.turn !== before", arg=before)
        self.ready()

    def pixels(self, selector="#canvas"):
        return self.page.eval_on_selector(selector, "canvas => canvas.toDataURL()")

    def box(self, selector="#canvas"):
        return self.page.locator(selector).bounding_box()

    def point(self, x, y, selector="#canvas"):
        box = self.box(selector)
        return box["x"] + box["width"] * x, box["y"] + box["height"] * y

    def hover(self, x, y):
        """Points at a part of the canvas, in fractions of its size, and returns what the tip says."""
        self.page.mouse.move(*self.point(x, y))
        self.page.wait_for_timeout(80)
        return self.page.inner_text("#tip") if self.page.is_visible("#tip") else ""

    def fragment(self):
        text = self.page.evaluate("location.hash.slice(1)")
        return dict(part.split("=", 1) for part in text.split("&") if part)

    def rectangle(self):
        """The part in sight: top, left, bottom, right; nothing if all is."""
        at = self.fragment().get("at")
        return [float(x) for x in at.replace("%2C", ",").split(",")] if at else None

    def choose(self, group, value):
        self.page.locator(f"#{group} input[value={value}]").evaluate("node => node.click()")

    def download(self, selector):
        self.page.evaluate("document.getElementById('save').open = true")
        with self.page.expect_download() as waiting:
            self.page.click(selector)
        return pathlib.Path(waiting.value.path()).read_bytes(), waiting.value.suggested_filename

    def is_quiet(self):
        assert not self.complaints, self.complaints
        outside = [url for url in self.requests if not url.startswith((self.address, "data:", "blob:"))]
        assert not outside, outside
