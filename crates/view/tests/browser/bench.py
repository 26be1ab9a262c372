"""Times and sizes of pages in headless Chromium, as a person would notice them. It measures; it asserts nothing.

    python3 bench.py PAGE.html…  [--chromium /usr/bin/chromium]

For 512 tokens × 144 heads: out/gallery/page-large.html of `make browser-test`. For long texts: what
`foveal map BOOK -o long.html` writes. Prints size, time until the first and the sharp picture, time to another head, time
until a rectangle of 1,024 tokens is sharp, frames while panning, and memory.
"""

import argparse
import pathlib
import shutil
import statistics
import time

from playwright.sync_api import sync_playwright

from opened import FLAGS, SEEN

# Drags the map over the screen, frame by frame, and gives back the time of each frame.
PAN = """async () => {
  const canvas = document.getElementById("canvas"), box = canvas.getBoundingClientRect(), times = [];
  const event = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, { clientX: x, clientY: y, pointerId: 1, bubbles: true, buttons: 1 }));
  canvas.setPointerCapture = () => {};
  event("pointerdown", box.left + 500, box.top + 400);
  let last = performance.now();
  for (let k = 0; k < 90; k++) {
    event("pointermove", box.left + 500 - 4 * k, box.top + 400 - 3 * k);
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - last);
    last = performance.now();
  }
  event("pointerup", box.left, box.top);
  return times.slice(5);
}"""


def until_ready(page):
    start = time.monotonic()
    page.wait_for_selector("body[data-ready=yes]", timeout=60_000)
    return (time.monotonic() - start) * 1000


def change(page, action):
    """Milliseconds from an action until its picture is sharp."""
    turn = page.get_attribute("body", "data-turn")
    start = time.monotonic()
    action()
    page.wait_for_function("turn => document.body.dataset.turn !== turn && document.body.dataset.ready === 'yes'", arg=turn, polling=5)
    return (time.monotonic() - start) * 1000


def measure(browser, path):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(SEEN)
    start = time.monotonic()
    page.goto(path.resolve().as_uri(), wait_until="commit")
    page.wait_for_selector("body[data-turn]", timeout=60_000)
    first = (time.monotonic() - start) * 1000
    until_ready(page)
    sharp = (time.monotonic() - start) * 1000
    print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, first picture {first:.0f} ms, sharp {sharp:.0f} ms")
    heads = page.locator("#head option").count()
    if heads > 2:
        times = [change(page, lambda: page.select_option("#head", str(k % (heads - 1)))) for k in range(1, 6)]
        print(f"  another head: {statistics.median(times):.0f} ms, at most {max(times):.0f}")
    rows = int(page.evaluate("document.getElementById('canvas').ariaLabel.match(/\\d+/)[0]"))
    if rows > 1500:
        times = []
        for k in range(5):
            at = rows // 8 + k * rows // 10
            fragment = f"at={at},{at // 2},{at + 1024},{at // 2 + 1024}"
            times.append(change(page, lambda: page.evaluate("fragment => (location.hash = fragment)", fragment)))
        print(f"  a rectangle of 1,024 × 1,024: {statistics.median(times):.0f} ms, at most {max(times):.0f}")
    if rows > 40:
        page.evaluate("fragment => (location.hash = fragment)", f"at={rows // 4},{rows // 8},{rows // 4 + rows // 5},{rows // 8 + rows // 5}")
        page.wait_for_timeout(1500)
        frames = sorted(page.evaluate(PAN))
        print(f"  panning: a frame {statistics.median(frames):.1f} ms, p95 {frames[int(len(frames) * 0.95)]:.1f} ms")
    client = context.new_cdp_session(page)
    used = client.send("Runtime.getHeapUsage")
    print(f"  heap {used['usedSize'] / 1e6:.0f} MB, buffers {used.get('backingStorageSize', 0) / 1e6:.0f} MB")
    context.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=FLAGS)
        for path in options.pages:
            measure(browser, path)
        browser.close()


if __name__ == "__main__":
    main()
