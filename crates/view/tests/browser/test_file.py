"""The exported file: controls, map, views, saving, keys, languages."""

import json
import xml.etree.ElementTree as ET

from opened import Opened


def opens_on_the_head_it_names(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        assert it.page.input_value("#layer") == "2" and it.page.input_value("#head") == "3"
        assert "Layer 2 · Head 3" in it.page.inner_text("#note")
        it.settled(lambda: it.page.select_option("#head", "1"))
        assert "Head 1" in it.page.inner_text("#note")
        it.is_quiet()


def every_choice_changes_the_picture(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        seen = {it.pixels()}
        for action in (
            lambda: it.page.select_option("#head", "2"),
            lambda: it.page.select_option("#layer", "3"),
            lambda: it.page.click("#head-more"),
            lambda: it.page.select_option("#head", "-1"),
            lambda: it.choose("measure", "norms"),
            lambda: it.choose("measure", "rollout"),
            lambda: it.choose("scale", "log"),
            lambda: it.choose("unit", "tokens"),
            lambda: it.page.check("#hide"),
            lambda: it.choose("view", "lines"),
            lambda: it.choose("view", "heads"),
        ):
            it.settled(action)
            now = it.pixels()
            assert now not in seen, "the picture did not change"
            seen.add(now)
        it.is_quiet()


def a_head_is_chosen_among_all(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        # The picture of layer 0, head 0 is the first of the overview.
        it.settled(lambda: it.page.mouse.click(*[a + b for a, b in zip(it.point(0, 0, "#overview"), (34, 34))]))
        assert it.page.input_value("#layer") == "0" and it.page.input_value("#head") == "0"
        it.page.focus("#overview")
        it.settled(lambda: it.page.keyboard.press("ArrowDown"))
        it.settled(lambda: it.page.keyboard.press("ArrowRight"))
        assert it.page.input_value("#layer") == "1" and it.page.input_value("#head") == "1"


def wheel_drag_and_buttons_move_the_map(browser, folder):
    with Opened(browser, folder / "page-large.html") as it:
        assert it.rectangle() is None and not it.page.is_visible("#minimap")
        it.page.mouse.move(*it.point(0.3, 0.6))
        for _ in range(6):
            it.settled(lambda: it.page.mouse.wheel(0, -200))
        near = it.rectangle()
        assert near and near[2] - near[0] < 200 and it.page.is_visible("#minimap")
        it.page.mouse.down()
        it.settled(lambda: it.page.mouse.move(*it.point(0.2, 0.5), steps=4))
        it.page.mouse.up()
        moved = it.rectangle()
        assert moved[0] > near[0] and moved[1] > near[1], (near, moved)
        # A drag is no click: nothing is pinned by it.
        assert "pin" not in it.fragment()
        it.settled(lambda: it.page.click("#zoom-in"))
        closer = it.rectangle()
        assert closer[2] - closer[0] < moved[2] - moved[0]
        it.settled(lambda: it.page.mouse.click(*it.point(0.1, 0.1, "#minimap")))
        assert it.rectangle()[0] < closer[0]
        it.settled(lambda: it.page.click("#zoom-all"))
        assert it.rectangle() is None
        it.is_quiet()


def a_pinch_zooms(browser, folder):
    with Opened(browser, folder / "page-large.html", touch=True) as it:
        x, y = it.point(0.3, 0.6)
        client = it.context.new_cdp_session(it.page)

        def touch(kind, apart):
            points = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}] if kind != "touchEnd" else []
            client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        touch("touchStart", 30)
        for apart in (50, 80, 120):
            touch("touchMove", apart)
        touch("touchEnd", 0)
        it.page.wait_for_timeout(200)
        it.ready()
        near = it.rectangle()
        assert near and near[2] - near[0] < 250, near


def far_and_near_agree(browser, folder):
    """What the tip says of a pixel that pools weights is at least what it says of each weight below it."""
    with Opened(browser, folder / "page-large.html") as it:
        tip = it.hover(0.2, 0.7)
        assert "Max of 2 × 2 weights" in tip or "→" in tip, tip
        it.settled(lambda: it.choose("pool", "mean"))
        assert "pool=mean" in it.page.evaluate("location.hash")


def search_jumps_to_a_token(browser, folder):
    with Opened(browser, folder / "page-large.html") as it:
        it.settled(lambda: it.page.fill("#search", "juliet"))
        assert "1 of" in it.page.inner_text("#found")
        first = it.rectangle()
        it.settled(lambda: it.page.press("#search", "Enter"))
        assert "2 of" in it.page.inner_text("#found") and it.rectangle() != first
        assert "Juliet" in it.page.inner_text("#reading-title")
        it.page.fill("#search", "no such token")
        assert "not found" in it.page.inner_text("#found")


def a_link_restores_the_view(browser, folder):
    with Opened(browser, folder / "page-large.html") as it:
        it.settled(lambda: it.page.select_option("#layer", "5"))
        it.page.mouse.move(*it.point(0.3, 0.6))
        for _ in range(4):
            it.settled(lambda: it.page.mouse.wheel(0, -200))
        it.settled(lambda: it.choose("scale", "log"))
        fragment, picture = it.page.evaluate("location.hash.slice(1)"), it.rectangle()
        it.hover(0.99, 0.001)
    with Opened(browser, folder / "page-large.html", fragment=fragment) as again:
        assert again.page.input_value("#layer") == "5" and again.fragment()["scale"] == "log"
        assert all(abs(a - b) < 0.5 for a, b in zip(again.rectangle(), picture)), (again.rectangle(), picture)


def saves_svg_png_json_and_csv(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        bytes_, name = it.download("#save-svg")
        svg = ET.fromstring(bytes_)
        assert name == "attention-attention-layer2-head3.svg" and svg.tag.endswith("svg")
        texts = "".join(node.text or "" for node in svg.iter() if node.tag.endswith("text"))
        assert "unbelievable" in texts and "Layer 2 · Head 3" in texts
        assert it.download("#save-png")[0].startswith(b"\x89PNG")
        figures = json.loads(it.download("#save-json")[0])
        assert figures["queries"][2] == "unbelievable" and abs(sum(figures["values"][3]) - 1) < 1e-4
        lines = it.download("#save-csv")[0].decode().splitlines()
        assert len(lines) == 1 + len(figures["queries"]) and lines[1].startswith("[CLS],")
        it.settled(lambda: it.choose("view", "lines"))
        assert b"<path" in it.download("#save-svg")[0]
        it.is_quiet()


def keys_alone_are_enough(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        it.page.focus("#canvas")
        for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
            it.page.keyboard.press(key)
        it.page.wait_for_timeout(80)
        assert "→" in it.page.inner_text("#tip")
        it.settled(lambda: it.page.keyboard.press("Enter"))
        assert "cell" in it.fragment() and "pin" in it.fragment()
        it.settled(lambda: it.page.keyboard.press("Escape"))
        assert "pin" not in it.fragment()
        it.settled(lambda: it.page.keyboard.press("]"))
        assert it.page.input_value("#head") == "4"
        it.settled(lambda: it.page.keyboard.press("}"))
        assert it.page.input_value("#layer") == "3"
        it.page.keyboard.press("/")
        assert it.page.evaluate("document.activeElement.id") == "search"


def themes_and_languages(browser, folder):
    with Opened(browser, folder / "page-small.html", scheme="dark") as it:
        assert it.page.get_attribute("html", "data-theme") == "dark"
        dark = it.pixels()
        it.settled(lambda: it.page.click("#theme"))
        assert it.page.get_attribute("html", "data-theme") == "light" and it.pixels() != dark
        english = it.page.inner_text("body")
        it.settled(lambda: it.page.click("#language"))
        korean = it.page.inner_text("body")
        assert it.page.get_attribute("html", "lang") == "ko" and "쿼리" in it.page.get_attribute("#canvas", "aria-label")
        for word in ("Weights", "All heads", "Attention is not", "Compare", "Head report"):
            assert word in english and word not in korean, word
        for word in ("가중치", "모든 헤드", "어텐션은 설명이 아닙니다", "비교"):
            assert word in korean and word not in english, word
        # The button has a sign that needs no Korean font.
        assert it.page.locator("#language svg").count() == 1
        it.is_quiet()


def a_phone_shows_it_all(browser, folder):
    with Opened(browser, folder / "page-small.html", size=(390, 844), touch=True) as it:
        assert it.page.evaluate("document.documentElement.scrollWidth") <= 390
        x, y = it.point(0.5, 0.5)
        it.settled(lambda: it.page.touchscreen.tap(x, y))
        assert "cell" in it.fragment()


def the_hint_and_the_text_stand_above_the_fold(browser, folder):
    with Opened(browser, folder / "page-large.html") as it:
        for selector in ("#text", "#text-section small"):
            box = it.box(selector)
            assert box["y"] + box["height"] <= 900, selector
        assert it.box()["y"] + it.box()["height"] <= 900


TESTS = [
    opens_on_the_head_it_names, every_choice_changes_the_picture, a_head_is_chosen_among_all,
    wheel_drag_and_buttons_move_the_map, a_pinch_zooms, far_and_near_agree, search_jumps_to_a_token,
    a_link_restores_the_view, saves_svg_png_json_and_csv, keys_alone_are_enough, themes_and_languages,
    a_phone_shows_it_all, the_hint_and_the_text_stand_above_the_fold,
]
