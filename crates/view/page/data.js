// The data of the page: chunks unpacked on demand, and the matrix that is shown, with words merged and tokens hidden.

const DATA = JSON.parse(document.getElementById("data").textContent);
const chunks = new Map();

async function inflate(id) {
  const text = atob(document.getElementById(id).textContent), bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The last few layers stay unpacked: going back and forth is instant, and memory stays bounded.
function unpacked(id) {
  if (!chunks.has(id)) {
    if (chunks.size > 8) chunks.delete(chunks.keys().next().value);
    chunks.set(id, inflate(id));
  }
  return chunks.get(id);
}

// One head's values as floats; head −1 is the mean of all.
async function matrix(g, measure, layer, head) {
  const group = DATA.groups[g];
  const rows = group.queries.labels.length, cols = group.keys.labels.length;
  const bytes = await unpacked(`${measure}-${g}-${layer}`);
  const size = rows * 4 + rows * cols;
  const values = new Float32Array(rows * cols);
  const count = measure === "rollout" ? 1 : group.heads;
  const chosen = count === 1 ? [0] : head < 0 ? [...Array(count).keys()] : [head];
  for (const h of chosen) {
    const at = h * size;
    const steps = new DataView(bytes.buffer, bytes.byteOffset + at, rows * 4);
    const codes = bytes.subarray(at + rows * 4, at + size);
    for (let i = 0; i < rows; i++) {
      const step = steps.getFloat32(i * 4, true) / chosen.length;
      for (let j = i * cols; j < (i + 1) * cols; j++) values[j] += codes[j] === 255 ? NaN : codes[j] * step;
    }
  }
  return { rows, cols, values };
}

// Small pictures of all heads of a group: bytes, 255 for what is no number.
async function thumbs(g, measure) {
  const group = DATA.groups[g];
  const rows = Math.min(DATA.thumb, group.queries.labels.length), cols = Math.min(DATA.thumb, group.keys.labels.length);
  return { rows, cols, bytes: await unpacked(`${measure}-${g}-thumbs`) };
}

// As the pictures of the library show a token: spaces at its ends and line ends become visible.
function visible(token) {
  const ends = token.replace(/^[ \u00a0▁]+|[ \u00a0▁]+$/g, (s) => "·".repeat(s.length));
  const shown = ends.replace(/▁/g, " ").replace(/\n/g, "⏎").replace(/\r/g, "␍").replace(/\t/g, "⇥")
    .replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffd]/g, "□");
  return shown || "∅";
}

// The entries of an axis: each has a label, the tokens it stands for, and whether it is special.
function entries(tokens, merge, hide) {
  const special = new Set(tokens.special), out = [];
  tokens.labels.forEach((label, i) => {
    if (hide && special.has(i)) return;
    const last = out[out.length - 1];
    if (merge && last && last.word === tokens.words[i] && last.members[last.members.length - 1] === i - 1) {
      last.members.push(i);
      last.raw += label;
    } else {
      out.push({ raw: label, word: tokens.words[i], members: [i], special: special.has(i) });
    }
  });
  for (const entry of out) {
    if (entry.members.length > 1) entry.raw = tokens.word_labels[entry.word] ?? entry.raw;
    entry.label = visible(entry.raw);
  }
  return out;
}

// Keys of a word are summed, queries averaged.
function gathered(full, queries, keys) {
  const rows = queries.length, cols = keys.length, values = new Float32Array(rows * cols);
  let max = 0;
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++) {
      let sum = 0;
      for (const a of queries[i].members) for (const b of keys[j].members) sum += full.values[a * full.cols + b];
      const value = sum / queries[i].members.length;
      values[i * cols + j] = value;
      if (value > max) max = value;
    }
  }
  return { rows, cols, values, max: max || 1, queries, keys };
}

// Where a value lies between nothing and the largest, and back. Log: over four orders of magnitude.
const SCALES = {
  linear: { to: (r) => r, from: (t) => t },
  root: { to: (r) => Math.sqrt(r), from: (t) => t * t },
  log: { to: (r) => (Number.isNaN(r) ? NaN : r > 0 ? Math.max(0, 1 + Math.log10(r) / 4) : 0), from: (t) => 10 ** (4 * (t - 1)) },
};

function number(value) {
  if (Number.isNaN(value)) return "NaN";
  if (value === 0) return "0";
  if (value >= 100) return value.toFixed(0);
  // No digits that the page does not have.
  if (DATA.floor > 0) return value < 0.001 ? "< 0.001" : value.toFixed(value >= 10 ? 1 : 3);
  return value >= 0.001 ? value.toFixed(value >= 10 ? 1 : 4) : value.toExponential(1);
}
