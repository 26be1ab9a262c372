"""The page of the explorer inside a notebook: a frame, and a kernel that answers its questions."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any

import anywidget
import traitlets

from foveal import _foveal
from foveal.trace import Trace

__all__ = ["Explorer", "show"]

# Carries messages between the frame and the kernel; the page itself is inside the frame.
_CARRIER = """
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width: 100%; border: 0; height: ${model.get("height")}px`;
  frame.title = "Foveal";
  const onWindow = ({ source, data }) => {
    if (source === frame.contentWindow && data?.foveal) model.send(data.foveal);
  };
  const onKernel = (message, buffers) => {
    const own = (buffers ?? []).map((b) => (b instanceof ArrayBuffer ? b : b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength)));
    frame.contentWindow?.postMessage({ foveal: message, buffers: own }, "*", own);
  };
  window.addEventListener("message", onWindow);
  model.on("msg:custom", onKernel);
  frame.srcdoc = model.get("page");
  el.append(frame);
  return () => {
    window.removeEventListener("message", onWindow);
    model.off("msg:custom", onKernel);
  };
}
export default { render };
"""


class Explorer(anywidget.AnyWidget):
    """The page as a widget."""

    _esm = _CARRIER
    page = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(640).tag(sync=True)

    def __init__(self, trace: Trace, language: str = "en", height: int = 640):
        axes, sites = trace._page()
        self._trace, self._language = trace, language
        self._answers = _foveal._Explorer(trace._all(), axes, sites, trace.text, trace.name, language)
        self._cancelled: set[int] = set()
        super().__init__(page=_foveal.framed_page(language), height=height)
        self.on_msg(self._on_message)

    def _on_message(self, _: Any, message: dict[str, Any], __: Any) -> None:
        if not isinstance(message, dict) or "id" not in message:
            return
        if message.get("cancel"):
            self._cancelled.add(message["id"])
            return
        # Of its own, so that a long question does not hold up the cells of the notebook.
        threading.Thread(target=self._answer, args=(message,), daemon=True).start()

    def _answer(self, message: dict[str, Any]) -> None:
        number = message["id"]
        replies = self._answers.ask(json.dumps(message.get("request")))
        for at, (head, buffers) in enumerate(replies):
            if number in self._cancelled:
                self._cancelled.discard(number)
                return
            self.send({"id": number, "head": json.loads(head), "part": at + 1 < len(replies)}, buffers=list(buffers))

    def _repr_mimebundle_(self, **keywords: Any) -> Any:
        bundle = super()._repr_mimebundle_(**keywords)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        data = dict(data or {})
        data["text/html"] = _still(self._trace, self._language, self.height)
        return data, metadata


def _still(trace: Trace, language: str, height: int) -> str:
    """The page as a file, in a frame: what a saved notebook shows where no kernel answers."""
    page = base64.b64encode(trace.html(language=language).encode()).decode()
    return (
        f'<iframe title="Foveal" style="width: 100%; border: 0; height: {height}px" '
        f'src="data:text/html;charset=utf-8;base64,{page}"></iframe>'
    )


def show(trace: Trace, *, language: str = "en", height: int = 640) -> Explorer:
    """A widget that shows a trace."""
    return Explorer(trace, language, height)
