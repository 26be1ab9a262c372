"""The page in its other two places: served, and in a notebook."""

import stand_in
from opened import SEEN, Opened


def served_it_reads_writes_and_switches_heads_off(browser, folder):
    server = stand_in.Server((folder / "page-served.html").read_text())
    try:
        with Opened(browser, server.address) as it:
            assert it.page.input_value("#layer") == "1" and it.page.is_visible("#live")
            assert it.page.is_visible("#overview-sampled")
            # The weight that the table prints is the kernel's.
            it.settled(lambda: it.choose("unit", "tokens"))
            it.settled(lambda: it.choose("view", "table"))
            shown = float(it.page.inner_text("#table tbody tr:nth-child(4) td:nth-child(3)"))
            assert abs(shown - stand_in.weights({"layer": 1, "head": 2}, 7)[3][1]) < 1e-4
            it.settled(lambda: it.choose("view", "map"))
            it.page.fill("#input", "more words here")
            it.settled(lambda: it.page.click("#read"))
            it.page.wait_for_function("() => document.querySelectorAll('#text span').length === 10")
            it.page.click("#generate")
            it.page.wait_for_function("() => document.querySelectorAll('#text span').length === 13")
            assert "new2" in it.page.inner_text("#written")
            before = it.page.inner_text("#next")
            it.settled(lambda: it.page.click("#switch"))
            it.page.wait_for_function("() => document.querySelectorAll('#next i.after').length > 0")
            assert "→" in it.page.inner_text("#next") and "→" not in before
            assert any(r["kind"] == "predict" and r["off"] == [["decoder", 1, 2]] for r in server.kernel.asked)
            it.is_quiet()
    finally:
        server.close()


def served_errors_are_said_and_long_work_is_stopped(browser, folder):
    server = stand_in.Server((folder / "page-served.html").read_text())
    try:
        with Opened(browser, server.address) as it:
            it.page.fill("#input", "wrong")
            it.page.click("#read")
            it.page.wait_for_selector("#message:not([hidden])")
            assert "this text is wrong; take another" in it.page.inner_text("#message")
            it.page.fill("#input", "slow")
            it.page.click("#read")
            it.page.wait_for_selector("#stop:not([hidden])")
            it.page.wait_for_timeout(300)
            it.page.click("#stop")
            it.page.wait_for_timeout(600)
            assert server.kernel.cancelled == 1 and not it.page.is_visible("#progress")
    finally:
        server.close()


def in_a_notebook_messages_do_the_same(browser, folder):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    complaints = []
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.add_init_script(SEEN)
    try:
        frame, kernel = stand_in.open_notebook(page, (folder / "page-framed.html").read_text())
        frame.locator("body[data-ready=yes]").wait_for()
        assert frame.locator("#text span").count() == 5
        frame.locator("#unit input[value=tokens]").evaluate("node => node.click()")
        frame.locator("#text span").nth(6).wait_for()
        frame.locator("#text span").nth(5).click()
        frame.locator("#strongest li").nth(3).wait_for()
        frame.locator("#view input[value=neurons]").evaluate("node => node.click()")
        frame.locator("#language").click()
        assert "쿼리" in frame.locator("#canvas").get_attribute("aria-label")
        kinds = {request["kind"] for request in kernel.asked}
        assert {"meta", "overview", "tile", "neurons"} <= kinds, kinds
        assert not complaints, complaints
    finally:
        context.close()


TESTS = [
    served_it_reads_writes_and_switches_heads_off, served_errors_are_said_and_long_work_is_stopped,
    in_a_notebook_messages_do_the_same,
]
