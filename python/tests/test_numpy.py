"""The engine from NumPy, against plain float64."""

import math
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import foveal

rng = np.random.default_rng(1)


def arrays(b=2, h=4, g=2, t=17, s=23, d=8, dv=5):
    return tuple(rng.standard_normal(shape).astype(np.float32) for shape in ((b, h, t, d), (b, g, s, d), (b, g, s, dv)))


def reference(q, k, v, *, visible=None, bias=0.0, scale=None, softcap=None, sinks=None):
    """(out, lse, weights) in float64."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if softcap is not None:
        scores = softcap * np.tanh(scores / softcap)
    scores = scores + bias
    if visible is not None:
        scores = np.where(visible, scores, -np.inf)
    extra = np.full((*scores.shape[:3], 1), -np.inf)
    if sinks is not None:
        extra[:] = np.asarray(sinks)[None, :, None, None]
    everything = np.concatenate([scores, extra], -1)
    most = everything.max(-1, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        lse = (np.log(np.exp(everything - most).sum(-1, keepdims=True)) + most)[..., 0]
    weights = np.where(np.isfinite(lse)[..., None], np.exp(scores - np.where(np.isfinite(lse), lse, 0.0)[..., None]), 0.0)
    return weights @ v, lse, weights


def close(got, want):
    assert got.shape == want.shape
    assert np.all(np.abs(got - want) <= 1e-5 + 5e-6 * np.abs(want)), np.abs(got - want).max()


def position(t, s):
    return np.arange(s)[None, :] - (np.arange(t)[:, None] + s - t)


CASES = {
    "plain": ({}, {}),
    "causal": ({"causal": True}, {"visible": lambda t, s: position(t, s) <= 0}),
    "window": ({"window": (3, 1)}, {"visible": lambda t, s: (position(t, s) <= 1) & (position(t, s) >= -3)}),
    "lengths": ({"lengths": [23, 7]}, {"visible": lambda t, s: np.arange(s) < np.array([23, 7])[:, None, None, None]}),
    "alibi": ({"alibi": [0.5, 0.25, 0.1, 0.0]}, {"bias": lambda t, s: -np.abs(position(t, s)) * np.array([0.5, 0.25, 0.1, 0.0])[:, None, None]}),
    "softcap": ({"softcap": 2.0, "scale": 0.7}, {"softcap": 2.0, "scale": 0.7}),
    "sinks": ({"sinks": [1.0, -1.0, 0.0, 2.0]}, {"sinks": [1.0, -1.0, 0.0, 2.0]}),
    "first": ({"causal": True, "align": "first"}, {"visible": lambda t, s: np.arange(s)[None] <= np.arange(t)[:, None]}),
    "offsets": ({"causal": True, "align": [2, 5]}, {"visible": lambda t, s: np.arange(s) <= np.arange(t)[:, None] + np.array([2, 5])[:, None, None, None]}),
    "pattern": ({"pattern": foveal.Pattern.strided(5)}, {"visible": lambda t, s: (np.abs(position(t, s)) <= 5) | (position(t, s) % 5 == 0)}),
}


@pytest.mark.parametrize("name", CASES)
def test_options(name):
    given, expected = CASES[name]
    q, k, v = arrays()
    t, s = q.shape[2], k.shape[2]
    out, lse, weights = reference(q, k, v, **{n: f(t, s) if callable(f) else f for n, f in expected.items()})
    attention = foveal.Attention(**given)
    got, got_lse = attention.forward(q, k, v)
    close(got, out)
    seen = np.isfinite(lse)
    assert np.array_equal(np.isfinite(got_lse), seen)
    assert np.allclose(got_lse[seen], lse[seen], atol=1e-5)
    close(attention.weights(q, k), weights)
    close(attention.tile(q, k, got_lse, head=1, sequence=1, rows=(2, 9), cols=(3, 20)), weights[1, 1, 2:9, 3:20])
    close(attention.map(q, k, got_lse, head=3, size=(1, 1), pool="sum"), weights[0, 3].sum(keepdims=True))
    first, _ = attention.forward(q, k, v, tokens_first=True)
    assert np.array_equal(first, got) and first.strides[1] < first.strides[2]


def test_dense_masks_and_biases():
    q, k, v = arrays()
    mask, bias = rng.random((2, 1, 17, 23)) < 0.7, rng.standard_normal((4, 17, 23)).astype(np.float32)
    out, _, _ = reference(q, k, v, visible=mask, bias=bias)
    attention = foveal.Attention(mask=mask, bias=bias)
    got, lse = attention.forward(q, k, v)
    close(got, out)
    dout = rng.standard_normal(got.shape).astype(np.float32)
    grads = attention.backward(q, k, v, got, lse, dout)
    assert grads.dbias.shape == (1, 4, 17, 23)
    assert foveal.Attention(mask=mask, bias=bias, bias_gradient=False).backward(q, k, v, got, lse, dout).dbias is None
    # By finite differences in float64.
    for at in ((0, 2, 3, 5), (1, 0, 11, 7)):
        step = np.zeros(q.shape)
        step[at] = 1e-4
        loss = [(reference(q + sign * step, k, v, visible=mask, bias=bias)[0] * dout).sum() for sign in (1, -1)]
        assert abs((loss[0] - loss[1]) / 2e-4 - grads.dq[at]) < 1e-3
    step = np.zeros(bias.shape)
    step[1, 4, 6] = 1e-4
    loss = [(reference(q, k, v, visible=mask, bias=bias + sign * step)[0] * dout).sum() for sign in (1, -1)]
    assert abs((loss[0] - loss[1]) / 2e-4 - grads.dbias[0, 1, 4, 6]) < 1e-3


def test_types():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    q, k, v = arrays()
    out, _, _ = reference(q, k, v)
    half = foveal.Attention().forward(*(x.astype(np.float16) for x in (q, k, v)))[0]
    assert half.dtype == np.float16 and np.abs(half - out).max() < 5e-3
    brain = [x.astype(ml_dtypes.bfloat16) for x in (q, k, v)]
    got = foveal.Attention().forward(*brain)[0]
    assert got.dtype == ml_dtypes.bfloat16 and np.abs(got.astype(np.float32) - out).max() < 5e-2
    bits = foveal.Attention().forward(*(x.view(np.uint16) for x in brain))[0]
    assert np.array_equal(bits, got.view(np.uint16))
    wide = foveal.Attention(precision="float32").forward(*brain)[0]
    assert wide.dtype == np.float32


def test_strides():
    q, k, v = arrays(g=4)
    want = foveal.attention(q, k, v)
    token_first = [np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in (q, k, v)]
    assert np.array_equal(foveal.attention(*token_first), want)
    backward = [np.ascontiguousarray(x[..., ::-1])[..., ::-1] for x in (q, k, v)]
    assert np.allclose(foveal.attention(*backward), want, atol=1e-6)
    shared = np.broadcast_to(k[:, :1], k.shape)
    assert np.array_equal(foveal.attention(q, shared, v), foveal.attention(q, np.ascontiguousarray(shared), v))
    q.flags.writeable = False
    assert np.array_equal(foveal.attention(q, k, v), want)
    assert np.array_equal(foveal.attention(q[0], k[0], v[0]), want[0])


@pytest.mark.parametrize(
    "bad, error, message",
    [
        (lambda q, k, v: foveal.attention(q.astype(np.float64), k, v), TypeError, "float64"),
        (lambda q, k, v: foveal.attention(q.astype(">f4"), k, v), TypeError, "float32"),
        (lambda q, k, v: foveal.attention([[1.0]], k, v), ValueError, "axes"),
        (lambda q, k, v: foveal.attention(q, k[..., :3], v), ValueError, "k has shape"),
        (lambda q, k, v: foveal.attention(q[:, :3], k, v), ValueError, "heads"),
        (lambda q, k, v: foveal.attention(q, k, v, lengths=[1, 99]), ValueError, "lengths run"),
        (lambda q, k, v: foveal.attention(q, k, v, lengths=[-1, 2]), ValueError, "0 or more"),
        (lambda q, k, v: foveal.attention(q, k, v, mask=np.ones((3, 3), bool)), ValueError, "keep-array"),
        (lambda q, k, v: foveal.attention(q, k, v, mask=np.ones((17, 23))), TypeError, "bool"),
        (lambda q, k, v: foveal.attention(q, k, v, cuasal=True), TypeError, "causal"),
        (lambda q, k, v: foveal.attention(q, k, v, dropout=1.5), ValueError, "dropout"),
        (lambda q, k, v: foveal.attention(q, k, v, align="middle"), ValueError, "first"),
        (lambda q, k, v: foveal.Attention().tile(q, k, np.zeros((1, 1, 1))), ValueError, "lse"),
        (lambda q, k, v: foveal.Attention().tile(q, k, q), TypeError, "float64"),
        (lambda q, k, v: foveal.KvCache(1 << 40, 1 << 40, 8, capacity=5), ValueError, "memory"),
        (lambda q, k, v: foveal.set_num_threads(0), ValueError, "1 or more"),
        (lambda q, k, v: foveal.load("/nonexistent/model"), ValueError, "nonexistent"),
    ],
)
def test_bad_input(bad, error, message):
    with pytest.raises(error, match=message):
        bad(*arrays())


def test_unaligned_arrays_are_refused():
    q, k, v = arrays()
    memory = np.zeros(q.nbytes + 1, np.uint8)
    odd = memory[1:].view(np.float32).reshape(q.shape) if memory.ctypes.data % 4 else np.ndarray(q.shape, np.float32, memory, 1)
    with pytest.raises(ValueError, match="copy"):
        foveal.attention(odd, k, v)


def test_nan_spreads_where_it_is_seen():
    q, k, v = arrays(g=4)
    v[0, 0, 22] = np.nan
    out = foveal.attention(q, k, v, causal=True)
    assert np.isnan(out[0, 0, -1]).all() and np.isfinite(out[0, 0, :-1]).all() and np.isfinite(out[1]).all()


def test_cache():
    q, k, v = arrays(t=23)
    want, _ = foveal.Attention(causal=True).forward(q, k, v)
    for keywords in ({}, {"capacity": 30}, {"pages": 8, "page": 7}):
        cache = foveal.KvCache(2, 2, 8, 5, **keywords)
        for i in range(23):
            cache.append(k[:, :, i : i + 1], v[:, :, i : i + 1])
            out, _ = foveal.Attention(causal=True).decode(q[:, :, i : i + 1], cache)
            assert np.allclose(out, want[:, :, i : i + 1], atol=1e-5)
        cache.truncate(3)
        assert len(cache) == 3 and cache.lengths == [3, 3]
    assert np.array_equal(foveal.KvCache(1, 1, 4).select([0]).lengths, [0])


def test_family():
    q, k, v = arrays(g=4, s=17)
    phi = lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))).astype(np.float64)  # noqa: E731
    weights = np.tril(phi(q) @ phi(k).swapaxes(-1, -2))
    weights /= weights.sum(-1, keepdims=True)
    linear = foveal.LinearAttention("elu", causal=True)
    out, lse = linear.forward(q, k, v)
    close(out, weights @ v)
    close(linear.weights(q, k), weights)
    close(linear.tile(q, k, lse, head=1, rows=(3, 5), cols=(0, 4)), weights[0, 1, 3:5, 0:4])
    dq, dk, dv, learned = linear.backward(q, k, v, out, lse, out)
    assert dq.shape == q.shape and learned is None
    a = rng.standard_normal((4, 8)).astype(np.float32)
    scores = (np.tanh(q[:, :, :, None].astype(np.float64) + k[:, :, None]) * a[None, :, None, None]).sum(-1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    out, lse = foveal.AdditiveAttention(a).forward(q, k, v)
    assert np.allclose(out, weights @ v, atol=1e-5)
    assert foveal.AdditiveAttention(a).backward(q, k, v, out, lse, out)[3].shape == a.shape
    w = rng.standard_normal((1, 8, 8)).astype(np.float32)
    out, lse = foveal.LuongAttention(w).forward(q, k, v)
    close(out, reference((q.astype(np.float64) @ w), k, v, scale=1.0)[0])
    assert foveal.LuongAttention(w).backward(q, k, v, out, lse, out)[3].shape == w.shape


def test_positions():
    q, _, _ = arrays(d=8)
    turned = foveal.Rope(8).rotate(q, 3)
    angle = (np.arange(17) + 3)[:, None] * 10_000.0 ** (-np.arange(4) / 4)
    a, b = q[..., :4], q[..., 4:]
    want = np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)
    assert np.allclose(turned, want, atol=1e-5)
    assert np.allclose(foveal.alibi_slopes(8), 2.0 ** -np.arange(1, 9))
    assert foveal.positional_encoding(5, 6).shape == (5, 6)


def test_packed():
    starts = [0, 5, 5, 17]
    q, k, v = arrays(b=1, s=17)
    out, _ = foveal.Attention(causal=True, packed=(starts, starts)).forward(q, k, v)
    for a, b in zip(starts, starts[1:]):
        if a < b:
            part = foveal.attention(*(x[:, :, a:b] for x in (q, k, v)), causal=True)
            assert np.allclose(out[:, :, a:b], part, atol=1e-6)


def test_pickles():
    attention = pickle.loads(pickle.dumps(foveal.Attention(causal=True, softcap=3.0)))
    assert repr(attention) == "foveal.Attention(causal=True, softcap=3.0)"
    with pytest.raises(ValueError) as error:
        foveal.attention(np.ones((1, 1, 2, 0), np.float32), *arrays(1, 1, 1)[1:])
    assert isinstance(pickle.loads(pickle.dumps(error.value)), foveal.Error)


def test_threads():
    q, k, v = arrays(h=8, g=8, t=300, s=300, d=32, dv=32)
    want = foveal.attention(q, k, v)
    before = foveal.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            foveal.set_num_threads(threads)
            assert foveal.get_num_threads() == threads
            workers = [threading.Thread(target=lambda: results.append(foveal.attention(q, k, v))) for _ in range(8)]
            [worker.start() for worker in workers]
            [worker.join() for worker in workers]
    finally:
        foveal.set_num_threads(before)
    assert len(results) == 24 and all(np.array_equal(result, want) for result in results)


def test_after_a_fork():
    code = """
import os, numpy as np, foveal
x = np.random.default_rng(0).standard_normal((2, 8, 300, 32)).astype(np.float32)
for threads in (None, 2):
    if threads: foveal.set_num_threads(threads)
    want = foveal.attention(x, x, x)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(foveal.attention(x, x, x), want) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(foveal.attention(x, x, x), want)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


def test_a_long_call_in_blocks_is_the_same():
    """Calls of seconds are cut into blocks of queries, between which Ctrl-C is heard."""
    x = rng.standard_normal((1, 2, 20_000, 64)).astype(np.float32)
    attention = foveal.Attention(causal=True)
    out, lse = attention.forward(x, x, x)
    rows = slice(15_000, 15_008)
    part, part_lse = foveal.Attention(causal=True, align=[15_000]).forward(x[:, :, rows], x, x)
    close(out[:, :, rows], part)
    assert np.allclose(lse[:, :, rows], part_lse)


def test_ctrl_c():
    code = """
import numpy as np, foveal, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has background jobs ignore it
x = np.ones((1, 8, 40_000, 64), np.float32)
print("go", flush=True)
try:
    foveal.attention(x, x, x)
except KeyboardInterrupt:
    sys.exit(3)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    process.stdout.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 3


def test_import_takes_numpy_alone():
    code = "import sys, foveal; print([m for m in ('torch', 'transformers', 'anywidget', 'IPython') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
