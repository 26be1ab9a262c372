"""What the page says about what it shows: rows, text, arithmetic, tables, terms, the tour."""

from opened import Opened


def words_are_whole_and_keep_their_spaces(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        assert it.page.text_content("#text") == "[CLS]The unbelievable news about attention spread.[SEP]"
        assert it.page.locator("#text span").count() == 9
        it.settled(lambda: it.choose("unit", "tokens"))
        assert it.page.locator("#text span").count() == 12
        assert it.page.text_content("#text") == "[CLS]The unbelievable news about attention spread.[SEP]"
        it.settled(lambda: it.page.check("#hide"))
        assert it.page.locator("#text span").count() == 10


def a_pinned_token_shades_the_text(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        it.settled(lambda: it.page.click("#text span:nth-child(3)"))
        it.page.wait_for_timeout(100)
        assert "unbelievable" in it.page.inner_text("#reading-title")
        assert it.page.locator("#strongest li").count() > 4
        shaded = it.page.evaluate("[...document.querySelectorAll('#text span')].filter((s) => s.style.background).length")
        assert shaded > 2 and it.page.get_attribute("#text span:nth-child(3)", "aria-selected") == "true"
        # It stays while the head changes, and is let go by another click.
        it.settled(lambda: it.page.click("#head-more"))
        assert "unbelievable" in it.page.inner_text("#reading-title")
        it.settled(lambda: it.page.click("#text span:nth-child(3)"))
        assert "pin" not in it.fragment()


def kinds_have_their_own_tokens(browser, folder):
    with Opened(browser, folder / "page-translation.html") as it:
        assert it.page.get_attribute("html", "lang") == "ko" and "교차" in it.page.inner_text("#note")
        assert it.page.is_visible("#queries") and it.page.input_value("#layer") == "1"
        it.settled(lambda: it.page.click("#queries span:nth-child(3)"))
        it.page.wait_for_timeout(100)
        assert it.page.locator("#strongest li").count() > 2
        cross = it.pixels()
        it.settled(lambda: it.choose("site", "encoder"))
        assert it.pixels() != cross and not it.page.is_visible("#queries")
        it.is_quiet()


def the_arithmetic_of_a_cell_adds_up(browser, folder):
    with Opened(browser, folder / "page-small.html", fragment="unit=tokens&cell=5,3") as it:
        it.page.wait_for_selector("#cell li[data-step=weight]")

        def step(name):
            return float(it.page.inner_text(f"#cell li[data-step={name}] b"))

        assert abs(step("product") * 0.25 - step("scaled")) < 2e-4
        assert abs(step("exp") / step("sum") - step("weight")) < 2e-4
        assert abs(step("weight") * step("norm") - step("share")) < 2e-3
        assert "news" in it.page.inner_text("#cell .cell-of")


def a_click_opens_the_arithmetic(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        it.settled(lambda: it.page.mouse.click(*it.point(0.3, 0.5)))
        it.page.wait_for_selector("#cell li[data-step=weight]")
        it.settled(lambda: it.page.keyboard.press("Escape"))
        it.page.wait_for_timeout(50)
        assert it.page.locator("#cell li").count() == 0


def the_table_has_every_number(browser, folder):
    with Opened(browser, folder / "page-small.html", fragment="view=table&unit=tokens") as it:
        it.page.wait_for_selector("#table table")
        assert it.page.locator("#table tbody tr").count() == 12 and it.page.locator("#table thead th").count() == 13
        row = [float(x) for x in it.page.locator("#table tbody tr:nth-child(5) td").all_inner_texts()]
        assert abs(sum(row) - 1) < 0.001 * len(row)
        assert it.page.get_attribute("#table th", "scope") == "col"
        it.is_quiet()


def several_heads_lie_over_each_other(browser, folder):
    with Opened(browser, folder / "page-small.html", fragment="view=heads") as it:
        boxes = it.page.locator("#head-choice input")
        assert boxes.count() == 6 and it.page.locator("#head-choice input:checked").count() == 4
        before = it.pixels()
        it.settled(lambda: boxes.nth(5).evaluate("node => node.click()"))
        assert it.pixels() != before and it.fragment()["heads"] == "0.1.2.3.5"


def neurons_are_shown_for_the_pinned_query(browser, folder):
    with Opened(browser, folder / "page-small.html", fragment="view=neurons&pin=3") as it:
        first = it.pixels()
        it.settled(lambda: it.page.click("#text span:nth-child(6)"))
        assert it.pixels() != first
        it.is_quiet()


def two_heads_stand_side_by_side(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        it.settled(lambda: it.page.select_option("#with", "0~attention~0~4"))
        assert it.page.is_visible("#canvas-b") and it.pixels("#canvas-b") != it.pixels()
        assert it.fragment()["with"].replace("%7E", "~") == "0~attention~0~4"
        it.settled(lambda: it.page.click("#with-close"))
        assert not it.page.is_visible("#canvas-b")


def the_head_report_lists_all_heads(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        it.page.click("#report-make")
        it.page.wait_for_selector("#report tbody tr:nth-child(24)")
        it.settled(lambda: it.page.click("#report tbody tr:nth-child(8)"))
        assert it.page.input_value("#layer") == "1" and it.page.input_value("#head") == "1"


def terms_are_explained_with_their_lesson(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        for selector, words, lesson in (
            ("#measure input[value=norms] + span", "‖w · v · W_O‖", "lessons/en/10-what-heads-do.html#norms"),
            ("[data-term-of=head]", "side by side", "lessons/en/06-heads.html#head"),
            (".terms [data-term-of=query]", "The token that looks", "lessons/en/01-intuition.html#query"),
            (".terms [data-term-of=sink]", "mostly the first", "lessons/en/10-what-heads-do.html#sink"),
        ):
            it.page.hover(selector)
            it.page.wait_for_selector("#term:not([hidden])")
            it.page.wait_for_timeout(450)
            assert words in it.page.inner_text("#term"), it.page.inner_text("#term")
            assert it.page.get_attribute("#term a", "href") == lesson
            it.page.mouse.move(5, 5)
            it.page.wait_for_timeout(400)
        it.settled(lambda: it.page.click("#language"))
        it.page.hover("[data-term-of=layer]")
        it.page.wait_for_selector("#term:not([hidden])")
        assert "단계" in it.page.inner_text("#term") and "/ko/" in it.page.get_attribute("#term a", "href")


def the_first_visit_has_a_tour_of_five_steps(browser, folder):
    with Opened(browser, folder / "page-small.html", tour=True) as it:
        for step in range(1, 6):
            assert f"{step} / 5" in it.page.inner_text("#tour")
            it.page.click("#tour .primary")
        assert not it.page.is_visible("#tour") and it.page.locator(".pointed").count() == 0
        it.page.reload()
        it.ready()
        assert not it.page.is_visible("#tour")
        it.page.click("#help")
        assert it.page.is_visible("#tour")
        it.page.keyboard.press("Escape")
        assert not it.page.is_visible("#tour")


def roles_tell_the_truth(browser, folder):
    with Opened(browser, folder / "page-small.html") as it:
        assert it.page.get_attribute("#canvas", "role") == "application"
        assert "12 queries" in it.page.get_attribute("#canvas", "aria-label") or "9 queries" in it.page.get_attribute("#canvas", "aria-label")
        nameless = it.page.evaluate(
            """[...document.querySelectorAll("button, select, input, canvas[tabindex]")].filter((node) => node.offsetParent !== null
              && !(node.textContent.trim() || node.ariaLabel || node.labels?.length || node.title)).map((node) => node.id)"""
        )
        assert not nameless, nameless


TESTS = [
    words_are_whole_and_keep_their_spaces, a_pinned_token_shades_the_text, kinds_have_their_own_tokens,
    the_arithmetic_of_a_cell_adds_up, a_click_opens_the_arithmetic, the_table_has_every_number, several_heads_lie_over_each_other,
    neurons_are_shown_for_the_pinned_query, two_heads_stand_side_by_side, the_head_report_lists_all_heads,
    terms_are_explained_with_their_lesson, the_first_visit_has_a_tour_of_five_steps, roles_tell_the_truth,
]
