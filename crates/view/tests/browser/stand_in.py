"""A small source for the page, as a server and as a notebook's kernel: the protocol of docs/page.md, on made-up weights.

The real server is the crate `explorer`, the real kernel comes with the Python package. What they must agree on with the page
is tested here: requests, replies, parts, errors, cancelling.
"""

import array
import base64
import http.server
import json
import math
import struct
import threading
import time

TOKENS = ["The", " un", "believ", "able", " news", " spread", "."]
WORDS = [0, 1, 1, 1, 2, 3, 4]
NAMES = ["The", "unbelievable", "news", "spread", "."]
LAYERS, HEADS, DIM = 3, 4, 8


def vector(which, layer, head, token):
    return [math.sin(1 + which * 5 + layer * 3 + head * 7 + token * 2.3 + d * 1.7) * 1.4 for d in range(DIM)]


def row(layer, head, i, count):
    """Scores and weights of query i, causal."""
    q = vector(0, layer, head, i)
    products = [sum(a * b for a, b in zip(q, vector(1, layer, head, j))) for j in range(count)]
    scores = [p / math.sqrt(DIM) for p in products]
    top = max(scores[: i + 1])
    exps = [math.exp(s - top) if j <= i else 0.0 for j, s in enumerate(scores)]
    return products, scores, top, exps, sum(exps)


def weights(at, count):
    heads = range(HEADS) if at["head"] < 0 else [at["head"]]
    out = [[0.0] * count for _ in range(count)]
    for head in heads:
        for i in range(count):
            *_, exps, total = row(at["layer"], head, i, count)
            for j in range(count):
                out[i][j] += exps[j] / total / len(heads)
    return out


def floats(values):
    return array.array("f", values).tobytes()


class Failure(Exception):
    pass


class Kernel:
    """Answers requests: a generator of (head, buffers), the last of which is the reply."""

    def __init__(self):
        self.asked = []
        self.cancelled = 0
        self.texts = {"0": list(TOKENS)}

    def run(self, name, off=()):
        tokens = self.texts[name]
        extra = len(tokens) - len(TOKENS)
        words = WORDS + [WORDS[-1] + 1 + k for k in range(extra)]
        axis = {"labels": tokens, "words": words, "word_labels": NAMES + tokens[len(TOKENS):], "special": []}
        site = {
            "kind": "decoder", "queries": 0, "keys": 0, "layers": list(range(LAYERS)), "heads": HEADS,
            "measures": ["weights"], "salient": [1, 2],
        }
        return {
            "id": name, "model": "stand-in", "text": "".join(tokens), "axes": [axis], "sites": [site],
            "off": list(off), "next": self.predictions([]),
        }

    @staticmethod
    def predictions(off):
        raw = [math.exp(-k / 2 + 0.4 * math.sin(k + 3 * len(off))) for k in range(6)]
        return [{"token": k, "label": f" word{k}", "p": p / sum(raw)} for k, p in enumerate(raw)]

    def answer(self, request):
        self.asked.append(request)
        kind = request.get("kind")
        if kind == "meta":
            models = [{"id": "m", "name": "stand-in", "reads": ["text"], "from": "inside"},
                      {"id": "q", "name": "reader", "reads": ["question"], "from": "inside"}]
            yield {
                "title": "", "note": "", "language": "en", "digits": 4, "models": models, "runs": [self.run("0")], "view": {},
                "can": ["run", "overview", "cell", "neurons", "predict", "generate", "heads"],
            }, []
            return
        if kind == "run":
            if request["text"] == "wrong":
                raise Failure("this text is wrong; take another")
            for k in range(20 if request["text"] == "slow" else 2):
                yield {"part": True, "progress": k / 20, "what": "reading"}, []
                time.sleep(0.1)
            name = str(len(self.texts))
            self.texts[name] = list(TOKENS) + [f" {word}" for word in request["text"].split()]
            yield self.run(name, request.get("off", [])), []
            return
        at = request.get("at") or {"run": request["run"]}
        tokens = self.texts[at["run"]]
        count = len(tokens)
        if kind == "overview":
            codes, largest = bytearray(), []
            for layer in range(LAYERS):
                for head in range(HEADS):
                    matrix = weights({"layer": layer, "head": head}, count)
                    top = max(map(max, matrix))
                    largest.append(top)
                    codes += bytes(round(math.sqrt(w / top) * 254) for line in matrix for w in line)
            yield {"rows": count, "cols": count, "max": largest, "sampled": True}, [bytes(codes)]
        elif kind in ("tile", "map"):
            (top, bottom), (left, right) = request["rows"], request["cols"]
            matrix = weights(at, count)
            if not (0 <= top < bottom <= count and 0 <= left < right <= count):
                raise Failure("outside of the matrix")
            yield {}, [floats(w for line in matrix[top:bottom] for w in line[left:right])]
        elif kind == "cell":
            i, j = request["query"], request["key"]
            products, scores, top, exps, total = row(at["layer"], at["head"], i, count)
            yield {
                "product": products[j], "scale": 1 / math.sqrt(DIM), "scaled": scores[j], "score": scores[j] if j <= i else None,
                "visible": j <= i, "max": top, "exp": exps[j], "sum": total, "weight": exps[j] / total,
            }, [floats(vector(0, at["layer"], at["head"], i)), floats(vector(1, at["layer"], at["head"], j))]
        elif kind == "neurons":
            keys = [x for j in range(*request["keys"]) for x in vector(1, at["layer"], at["head"], j)]
            yield {}, [floats(vector(0, at["layer"], at["head"], request["query"])), floats(keys)]
        elif kind == "predict":
            yield {"base": self.predictions([]), "changed": self.predictions(request["off"])}, []
        elif kind == "generate":
            for k in range(3):
                yield {"part": True, "token": k, "label": f" new{k}", "text": f" new{k}", "p": 0.5}, []
                tokens.append(f" new{k}")
            yield self.run(at["run"]), []
        elif kind == "heads":
            names = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
            yield {"rows": [
                {"layer": layer, "head": head, "entropy": 1.0, "confidence": 0.5, "previous": 0.25, "first": 0.1, "same": 0.0}
                for layer, head in names
            ]}, []
        else:
            raise Failure(f"no such kind: {kind}")


def filled(data):
    return data + bytes(-len(data) % 8)


def frame(head, buffers):
    text = json.dumps({**head, "sizes": [len(b) for b in buffers]}).encode()
    body = filled(struct.pack("<I", len(text)) + text) + b"".join(map(filled, buffers))
    return struct.pack("<I", len(body)) + body


class Server:
    """The kernel over HTTP, on a free port."""

    def __init__(self, html):
        kernel = self.kernel = Kernel()

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                found = self.path.split("?")[0] == "/"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(html.encode() if found else b"")

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Type", "application/octet-stream")
                self.end_headers()
                try:
                    for head, buffers in kernel.answer(request):
                        self.wfile.write(frame(head, buffers))
                        self.wfile.flush()
                except Failure as failure:
                    self.wfile.write(frame({"error": {"code": "request", "message": str(failure)}}, []))
                except (BrokenPipeError, ConnectionResetError):
                    kernel.cancelled += 1

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/"

    def close(self):
        self.server.shutdown()


# The window around a framed page: hands messages on, as a notebook does.
NOTEBOOK = """<!doctype html><body style="margin:0"><iframe id="frame" style="border:0;width:100%;height:880px"></iframe><script>
window.addEventListener("message", async ({ data }) => {
  if (!data || !data.foveal) return;
  for (const reply of await window.kernel(data.foveal)) {
    const buffers = reply.buffers.map((text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
    document.getElementById("frame").contentWindow.postMessage({ foveal: reply.message, buffers }, "*");
  }
});
</script></body>"""


def open_notebook(page, html):
    """Puts the framed page into a notebook's window; returns its frame and the kernel."""
    kernel = Kernel()

    def hand_on(_, message):
        if message.get("cancel"):
            kernel.cancelled += 1
            return []
        try:
            replies = list(kernel.answer(message["request"]))
        except Failure as failure:
            replies = [({"error": {"code": "request", "message": str(failure)}}, [])]
        return [
            {"message": {"id": message["id"], "head": head, "part": bool(head.get("part"))},
             "buffers": [base64.b64encode(b).decode() for b in buffers]}
            for head, buffers in replies
        ]

    page.expose_binding("kernel", hand_on)
    page.set_content(NOTEBOOK)
    page.evaluate("html => document.getElementById('frame').srcdoc = html", html)
    return page.frame_locator("#frame"), kernel
