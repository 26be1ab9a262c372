"""Opens generated pages in headless Chromium and uses them as a person would.

    python3 check.py FOLDER [--chromium /usr/bin/chromium] [--shots FOLDER] [--only NAME]

FOLDER holds what `cargo run -p foveal-view --example gallery -- FOLDER pages` writes. Needs the Python package
`playwright` and a Chromium (Debian's package `chromium`); nothing is downloaded. Prints `N passed, N failed`.
"""

import argparse
import pathlib
import shutil
import sys
import traceback

from playwright.sync_api import sync_playwright

import test_exact
import test_file
import test_reading
import test_sources
from opened import FLAGS, Opened

# What a screenshot is made of: name, page, fragment, size.
SHOTS = [
    ("map", "page-small", "", (1280, 900)),
    ("map-dark-ko", "page-small", "theme=dark&lang=ko&cell=5,3&pin=5", (1280, 900)),
    ("lines", "page-small", "view=lines&pin=5", (1280, 900)),
    ("heads", "page-small", "view=heads&pin=5", (1280, 900)),
    ("neurons", "page-small", "view=neurons&pin=5", (1280, 900)),
    ("table", "page-small", "view=table", (1280, 900)),
    ("compare", "page-small", "with=0~attention~1~1", (1280, 900)),
    ("translation", "page-translation", "", (1280, 900)),
    ("large", "page-large", "", (1280, 900)),
    ("large-zoomed", "page-large", "at=100,80,140,130&pin=120", (1280, 900)),
    ("phone", "page-small", "", (390, 844)),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--shots", type=pathlib.Path, help="also write screenshots of every view into this folder")
    parser.add_argument("--only", default="", help="tests whose names hold this")
    options = parser.parse_args()
    modules = (test_file, test_reading, test_exact, test_sources)
    tests = [test for module in modules for test in module.TESTS if options.only in test.__name__]
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
        for name, page, fragment, size in SHOTS if options.shots else []:
            with Opened(browser, options.folder / f"{page}.html", fragment=fragment, size=size) as it:
                it.page.wait_for_timeout(300)
                it.page.screenshot(path=options.shots / f"{name}.png", full_page=size[0] < 500)
        browser.close()
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
