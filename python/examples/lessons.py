"""The Python of the lessons. The tests run it; the lessons show its lines."""

import numpy as np

import foveal

# Chapter 2: by hand.
q = k = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]], np.float32)
v = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], np.float32)
scores = q @ k.T / np.sqrt(4)
weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
out = foveal.attention(q, k, v)  # the same as weights @ v
assert np.allclose(out, weights @ v, atol=1e-5)

# Chapter 3: the scale.
scaled = foveal.Attention()  # 1/√d
unscaled = foveal.Attention(scale=1.0)  # softmax of q·k as it is
one = q[None, None]
assert unscaled.weights(one, one).max() > scaled.weights(one, one).max()

# Chapter 4: masks.
tokens = np.random.default_rng(0).standard_normal((2, 4, 7, 16)).astype(np.float32)
attention = foveal.Attention(causal=True, lengths=[7, 4])  # no future, and no padding
out, lse = attention.forward(tokens, tokens, tokens)
assert np.all(attention.weights(tokens, tokens)[1, :, :, 4:] == 0)

# Chapter 5: self and cross.
x, y = np.ones((1, 1, 5, 8), np.float32), np.ones((1, 1, 3, 8), np.float32)
own = foveal.Attention().weights(y, y)  # three words on themselves
cross = foveal.Attention().weights(y, x)  # three words on five others
assert own.shape[2:] == (3, 3) and cross.shape[2:] == (3, 5)

# Chapter 6: heads.
queries, keys = np.ones((1, 8, 5, 8), np.float32), np.ones((1, 2, 5, 8), np.float32)
grouped = foveal.Attention().weights(queries, keys)  # eight heads of queries share two of keys
assert grouped.shape == (1, 8, 5, 5)

# Chapter 7: positions.
summed = tokens + foveal.positional_encoding(7, 16)  # sinusoidal, added to the input
turned = foveal.Rope(16).rotate(tokens)  # RoPE: q and k are turned by their positions
near = foveal.Attention(alibi=4)  # ALiBi: a penalty on distance, for four heads
assert summed.shape == turned.shape == near.forward(tokens, tokens, tokens)[0].shape

# Chapter 8: before and beside.
additive = foveal.AdditiveAttention(np.ones((2, 4)))  # Bahdanau: v·tanh(q + k)
luong = foveal.LuongAttention(np.full((1, 4, 4), 0.1))  # Luong: q·W·k
pair = np.ones((1, 2, 3, 4), np.float32)
assert additive.weights(pair, pair).shape == luong.weights(pair, pair).shape == (1, 2, 3, 3)

# Chapter 9: a model that writes.
model = foveal.load("shakespeare")
for piece in model.generate("ROMEO:", 8):
    print(piece, end="")
trace = foveal.read(model, "To be or not to be")
tile = trace.tile(layer=4, head=4, rows=(0, 4), cols=(0, 4))
assert tile.shape == (4, 4)

# Chapter 10: what heads do.
scores = trace.head_scores()
best = max(scores, key=lambda head: head["previous"])
print(f"layer {best['layer']}, head {best['head']} looks at the token before: {best['previous']:.2f}")
rolled, norms = trace.rollout(), trace.norms(layer=4, head=4)
assert rolled.shape == norms.shape

# Chapter 11: translation.
translator = foveal.load("translate-en-ko")
print(translator.translate("The student reads two books."))
seen = foveal.read(translator, "The student reads two books.")
alignment = seen.weights(layer=0, head=0, kind="cross")  # Korean words on English ones
assert alignment.shape == seen.shape(0, "cross")[2:]

# Chapter 12: images.
swin = foveal.Attention(pattern=foveal.Pattern.swin((8, 8), (4, 4), (2, 2)))
patches = np.ones((1, 3, 64, 16), np.float32)
assert swin.forward(patches, patches, patches)[0].shape == patches.shape

# Chapter 13: long texts.
long = np.random.default_rng(1).standard_normal((1, 1, 12_000, 16)).astype(np.float32)
attention = foveal.Attention(causal=True)
out, lse = attention.forward(long, long, long)  # 144 million weights, none of them kept
whole = attention.map(long, long, lse, size=(20, 72))
closer = attention.map(long, long, lse, rows=(11_000, 11_040), cols=(7_980, 8_060), size=(20, 72))
assert whole.shape == closer.shape == (20, 72)
