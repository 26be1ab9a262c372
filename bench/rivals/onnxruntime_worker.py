"""ONNX Runtime's attention operators as a worker: see worker.py.

It has three that compute the same thing by different kernels, and which is the fastest depends on shape and mask.
"""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from worker import THREADS, NotOffered, Way, array, serve

FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32


def ways(work: dict) -> list[Way]:
    if work["work"] != "forward" or work["mask"] not in ("none", "causal") or work["bias"] != "none":
        raise NotOffered(f"{work['work']} with mask {work['mask']} and bias {work['bias']}")
    operators = [attention, multi_head_attention]
    if work["mask"] == "causal":
        operators.append(group_query_attention)
    heads_first = {name: array(work, name, work["shape"]) for name in "qkv"}
    return [operator(heads_first, work["mask"] == "causal") for operator in operators]


def attention(inputs: dict[str, np.ndarray], causal: bool) -> Way:
    """ai.onnx Attention on [B, H, T, D]."""
    node = helper.make_node("Attention", ["q", "k", "v"], ["out"], is_causal=int(causal))
    out = np.empty_like(inputs["q"])
    return way("ai.onnx Attention", node, inputs, {"out": out}, lambda: out)


def multi_head_attention(inputs: dict[str, np.ndarray], causal: bool) -> Way:
    """com.microsoft MultiHeadAttention on [B, T, H·D]."""
    heads = inputs["q"].shape[1]
    node = helper.make_node(
        "MultiHeadAttention", ["q", "k", "v"], ["out"], domain="com.microsoft", num_heads=heads, unidirectional=int(causal)
    )
    tokens_first = {name: merged(x) for name, x in inputs.items()}
    out = np.empty_like(tokens_first["q"])
    return way("com.microsoft MultiHeadAttention", node, tokens_first, {"out": out}, lambda: split(out, heads))


def group_query_attention(inputs: dict[str, np.ndarray], causal: bool) -> Way:
    """com.microsoft GroupQueryAttention on [B, T, H·D]: always causal, and also returns keys and values for a cache."""
    assert causal
    batch, heads, tokens, _ = inputs["q"].shape
    node = helper.make_node(
        "GroupQueryAttention",
        ["q", "k", "v", "", "", "last", "total"],
        ["out", "k_cache", "v_cache"],
        domain="com.microsoft",
        num_heads=heads,
        kv_num_heads=heads,
    )
    feed = {name: merged(x) for name, x in inputs.items()}
    feed["last"] = np.full([batch], tokens - 1, np.int32)
    feed["total"] = np.full([1], tokens, np.int32)
    outputs = {"out": np.empty_like(feed["q"]), "k_cache": np.empty_like(inputs["k"]), "v_cache": np.empty_like(inputs["v"])}
    return way("com.microsoft GroupQueryAttention", node, feed, outputs, lambda: split(outputs["out"], heads))


def way(name: str, node, inputs: dict, outputs: dict, answer) -> Way:
    """A model of this one node, with inputs and outputs bound to memory once and for all."""

    def described(arrays: dict):
        return [helper.make_tensor_value_info(n, INT32 if x.dtype == np.int32 else FLOAT, x.shape) for n, x in arrays.items()]

    graph = helper.make_graph([node], "one_node", described(inputs), described(outputs))
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=11)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for n, x in inputs.items():
        binding.bind_cpu_input(n, x)
    for n, x in outputs.items():
        binding.bind_output(n, "cpu", 0, x.dtype, x.shape, x.ctypes.data)
    # `answer` reads the bound outputs, which also keeps them alive; the inputs are kept by the default argument.
    return Way(name, lambda inputs=inputs: session.run_with_iobinding(binding), lambda _: {"out": answer()})


def merged(x: np.ndarray) -> np.ndarray:
    """[B, H, T, D] as [B, T, H·D]."""
    batch, heads, tokens, dim = x.shape
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(batch, tokens, heads * dim)


def split(x: np.ndarray, heads: int) -> np.ndarray:
    """[B, T, H·D] as [B, H, T, D]."""
    batch, tokens, width = x.shape
    return x.reshape(batch, tokens, heads, width // heads).transpose(0, 2, 1, 3)


if __name__ == "__main__":
    serve(f"ONNX Runtime {onnxruntime.__version__}", ways)
