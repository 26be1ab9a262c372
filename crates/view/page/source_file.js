// The source of an exported file: chunks of the document, decoded on demand; matrices computed by workers.

import { SourceError } from "./source.js";
import { Crew } from "./crew.js";
import { headScores } from "./head_scores.js";
import { pooled } from "./matrix.js";

/** @typedef {import("./source.js").Source} Source */
/** @typedef {import("./source.js").Request} Request */
/** @typedef {import("./source.js").Reply} Reply */
/** @typedef {import("./source.js").AskOptions} AskOptions */
/** @typedef {import("./source.js").At} At */
/** @typedef {import("./engine.js").HeadData} HeadData */

/** Cells of a map that one job pools: some 80 ms. */
const STRIP = 1 << 23;
/** Bytes of decoded chunks to keep. */
const KEEP = 160e6;

/**
 * The bytes of a chunk: a script that no browser runs.
 * @param {string} id
 */
async function decode(id) {
  const node = document.getElementById(id);
  if (!node) throw new SourceError("request", `the file has no ${id}`);
  const text = atob(node.textContent ?? ""), bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
  if (node.dataset.packed === undefined) return bytes.buffer;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).arrayBuffer();
}

/** @implements {Source} */
export class FileSource {
  constructor() {
    this.data = JSON.parse(document.getElementById("data")?.textContent ?? "{}");
    /** @type {Map<string, Promise<ArrayBuffer>>} */
    this.chunks = new Map();
    /** @type {Map<string, number>} */
    this.sizes = new Map();
    /** @type {Map<string, Promise<Float32Array>>} */
    this.rollouts = new Map();
    this.crew = new Crew(decode("wasm"));
  }

  /** @param {string} id */
  chunk(id) {
    const found = this.chunks.get(id) ?? decode(id);
    // The last ones used are the last ones forgotten.
    this.chunks.delete(id);
    this.chunks.set(id, found);
    found.then((buffer) => this.sizes.set(id, buffer.byteLength));
    let bytes = 0;
    for (const [other] of [...this.chunks].reverse()) {
      bytes += this.sizes.get(other) ?? 0;
      if (bytes > KEEP && other !== id) this.chunks.delete(other);
    }
    return found;
  }

  /**
   * @param {Request} request
   * @param {AskOptions} [options]
   * @returns {Promise<Reply>}
   */
  async ask(request, options = {}) {
    switch (request.kind) {
      case "meta": return { head: this.data.meta, buffers: [] };
      case "overview": return this.overview(request);
      case "map": return this.map(request, options);
      case "tile": return this.values(request, [request.rows[1] - request.rows[0], request.cols[1] - request.cols[0]], options);
      case "cell": return this.cell(request, options);
      case "neurons": return this.neurons(request);
      case "heads": return headScores(this, this.place(request).site, request, options);
      default: throw new SourceError("request", `a file cannot answer ${request.kind}`);
    }
  }

  /**
   * Where a site and a layer lie among what is stored.
   * @param {{site: string, layer?: number}} at
   */
  place({ site, layer }) {
    const sites = this.data.meta.runs[0].sites;
    const s = sites.findIndex((/** @type {any} */ other) => other.kind === site);
    const l = layer === undefined ? 0 : sites[s]?.layers.indexOf(layer);
    if (s < 0 || l < 0) throw new SourceError("request", "the file does not hold this layer");
    const axes = this.data.meta.runs[0].axes;
    const size = [axes[sites[s].queries].labels.length, axes[sites[s].keys].labels.length];
    return { s, l, site: sites[s], stored: this.data.sites[s].layers[l], rows: size[0], cols: size[1] };
  }

  /**
   * @param {At} at
   * @param {number} head
   * @returns {Promise<HeadData>}
   */
  async head(at, head) {
    const { s, l, site, stored, rows, cols } = this.place(at);
    const group = Math.floor((head * stored.groups) / site.heads);
    const [q, k, lse] = await Promise.all([`q-${s}-${l}-${head}`, `k-${s}-${l}-${group}`, `lse-${s}-${l}`].map((id) => this.chunk(id)));
    return {
      key: `${s}.${l}.${head}`, queries: rows, keys: cols, dim: stored.dim, half: stored.half, options: stored.options[head],
      q, k, lse: lse.slice(head * rows * 8, (head + 1) * rows * 8),
    };
  }

  /**
   * The heads that a matrix is the mean of.
   * @param {At} at
   */
  heads(at) {
    const { site } = this.place(at);
    if (at.head >= site.heads) throw new SourceError("request", "there is no such head");
    return at.head < 0 ? [...Array(site.heads).keys()] : [at.head];
  }

  /**
   * ‖v·W_o‖ of the keys.
   * @param {At} at
   * @param {number} head
   */
  async norms(at, head) {
    const { s, l, cols } = this.place(at);
    return new Float32Array(await this.chunk(`norm-${s}-${l}`), head * cols * 4, cols);
  }

  /**
   * @param {any} request
   * @param {[number, number]} size
   * @param {AskOptions} options
   * @returns {Promise<Reply>}
   */
  async values(request, size, { signal }) {
    const { at, measure, rows, cols } = request, place = this.place(at), mean = request.pool === "mean";
    const isMap = request.kind === "map";
    if (rows[0] < 0 || rows[1] > place.rows || cols[0] < 0 || cols[1] > place.cols) throw new SourceError("request", "outside of the matrix");
    if (measure === "rollout" || place.stored.dense) {
      const whole = await (measure === "rollout" ? this.rollout(at, signal) : this.dense(at, measure));
      const wide = cols[1] - cols[0], part = new Float32Array((rows[1] - rows[0]) * wide);
      for (let i = rows[0]; i < rows[1]; i++) {
        part.set(whole.subarray(i * place.cols + cols[0], i * place.cols + cols[1]), (i - rows[0]) * wide);
      }
      const values = isMap ? pooled({ values: part, rows: rows[1] - rows[0], cols: wide }, size, mean) : part;
      return { head: {}, buffers: [/** @type {ArrayBuffer} */ (values.buffer)] };
    }
    const heads = this.heads(at);
    const norms = await Promise.all(heads.map((head) => (measure === "norms" ? this.norms(at, head) : null)));
    const keys = heads.map((head) => `${place.s}.${place.l}.${head}`);
    const part = async (/** @type {[number, number]} */ down, /** @type {number} */ height) => {
      const job = { kind: isMap ? "map" : "tile", norms, rows: down, cols, size: [height, size[1]], mean, before: null };
      return (await this.crew.run(job, keys, (k) => this.head(at, heads[k]), signal)).values;
    };
    // Large maps are cut into strips, which all workers share, and which need not be finished once no one wants them.
    const tall = rows[1] - rows[0], strips = isMap ? Math.min(size[0], Math.ceil((tall * (cols[1] - cols[0]) * heads.length) / STRIP)) : 1;
    const pixel = (/** @type {number} */ k) => Math.floor((k * size[0]) / strips), row = (/** @type {number} */ p) => rows[0] + Math.floor((p * tall) / size[0]);
    const parts = await Promise.all(Array.from({ length: strips }, (_, k) => part([row(pixel(k)), row(pixel(k + 1))], pixel(k + 1) - pixel(k))));
    if (strips === 1) return { head: {}, buffers: [parts[0].buffer] };
    const values = new Float32Array(size[0] * size[1]);
    parts.forEach((strip, k) => values.set(strip, pixel(k) * size[1]));
    return { head: {}, buffers: [values.buffer] };
  }

  /**
   * A stored picture first, where there is one.
   * @param {any} request
   * @param {AskOptions} options
   */
  async map(request, options) {
    const { s, l, stored, rows, cols } = this.place(request.at);
    const [height, width] = stored.pyramid;
    if (options.onPart && height && request.measure === "weights" && request.pool === "max" && request.at.head >= 0) {
      const codes = new Uint8Array(await this.chunk(`pyramid-${s}-${l}`), request.at.head * height * width, height * width);
      const max = stored.pyramid_max[request.at.head], values = new Float32Array(request.size[0] * request.size[1]);
      const [down, across] = [request.rows[1] - request.rows[0], request.cols[1] - request.cols[0]];
      for (let y = 0; y < request.size[0]; y++) {
        const i = Math.min(height - 1, Math.floor(((request.rows[0] + ((y + 0.5) * down) / request.size[0]) * height) / rows));
        for (let x = 0; x < request.size[1]; x++) {
          const j = Math.min(width - 1, Math.floor(((request.cols[0] + ((x + 0.5) * across) / request.size[1]) * width) / cols));
          const code = codes[i * width + j];
          values[y * request.size[1] + x] = code === 255 ? NaN : (code / 254) ** 2 * max;
        }
      }
      options.onPart({ head: { coarse: true }, buffers: [/** @type {ArrayBuffer} */ (values.buffer)] });
    }
    return this.values(request, request.size, options);
  }

  /**
   * Stored weights, averaged over heads, times norms.
   * @param {At} at
   * @param {string} measure
   */
  async dense(at, measure) {
    const { s, l, rows, cols } = this.place(at), heads = this.heads(at);
    const bytes = await this.chunk(`w-${s}-${l}`), sum = new Float32Array(rows * cols);
    for (const head of heads) {
      const part = new Float32Array(bytes, head * rows * cols * 4, rows * cols);
      const norms = measure === "norms" ? await this.norms(at, head) : null;
      for (let k = 0; k < sum.length; k++) sum[k] += (part[k] * (norms ? norms[k % cols] : 1)) / heads.length;
    }
    return sum;
  }

  /**
   * From the first layer up to this one.
   * @param {At} at
   * @param {AbortSignal} [signal]
   * @returns {Promise<Float32Array>}
   */
  rollout(at, signal) {
    const { s, l, site } = this.place(at), key = `${s}.${l}`;
    const make = async () => {
      const before = l > 0 ? await this.rollout({ ...at, layer: site.layers[l - 1] }) : null;
      return this.mixed({ ...at, head: -1 }, before);
    };
    const found = this.rollouts.get(key) ?? make();
    this.rollouts.set(key, found);
    found.catch(() => this.rollouts.delete(key));
    signal?.throwIfAborted();
    return found;
  }

  /**
   * @param {At} at
   * @param {Float32Array | null} before
   */
  async mixed(at, before) {
    const { s, l, stored, rows: n } = this.place(at), heads = this.heads(at);
    if (!stored.dense) {
      const job = { kind: "rollout", norms: heads.map(() => null), rows: [0, n], cols: [0, n], size: [n, n], mean: false, before };
      const { values } = await this.crew.run(job, heads.map((head) => `${s}.${l}.${head}`), (k) => this.head(at, heads[k]));
      return values;
    }
    const mixed = await this.dense(at, "weights");
    for (let k = 0; k < mixed.length; k++) mixed[k] = mixed[k] / 2 + (k % (n + 1) === 0 ? 0.5 : 0);
    if (!before) return mixed;
    const out = new Float32Array(n * n);
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < n; k++) {
        const share = mixed[i * n + k];
        if (share) for (let j = 0; j < n; j++) out[i * n + j] += share * before[k * n + j];
      }
    }
    return out;
  }

  /** @param {any} request */
  async overview(request) {
    const { s, site, rows, cols } = this.place(request), [height, width] = this.data.sites[s].small;
    if (request.measure === "rollout") {
      const codes = new Uint8Array(site.layers.length * height * width), max = [];
      for (const [l, layer] of site.layers.entries()) {
        const small = pooled({ values: await this.rollout({ run: "0", site: request.site, layer, head: -1 }), rows, cols }, [height, width], false);
        const top = small.reduce((a, b) => Math.max(a, b), 0) || 1;
        small.forEach((value, k) => (codes[l * height * width + k] = Math.round(Math.sqrt(value / top) * 254)));
        max.push(top);
      }
      return { head: { rows: height, cols: width, max, sampled: false }, buffers: [codes.buffer] };
    }
    const codes = await this.chunk(`small-${s}-${request.measure}`);
    return { head: { rows: height, cols: width, max: this.data.sites[s].max[request.measure === "norms" ? 1 : 0], sampled: false }, buffers: [codes] };
  }

  /**
   * @param {any} request
   * @param {AskOptions} options
   */
  async cell({ at, query, key }, { signal }) {
    const { s, l, site, stored, cols } = this.place(at);
    const data = await this.head(at, at.head);
    const job = { kind: "cell", norms: [null], rows: [query, query + 1], cols: [key, key + 1], size: [1, 1], mean: false, before: null };
    const { steps } = await this.crew.run(job, [data.key], async () => data, signal);
    const [product, scale, scaled, score, visible, max, exp, sum, weight] = steps;
    const head = { product, scale, scaled, score: visible ? score : null, visible: Boolean(visible), max, exp, sum, weight };
    const buffers = [vector(data, "q", query), vector(data, "k", key)];
    if (stored.norms) Object.assign(head, { norm: (await this.norms(at, at.head))[key] });
    if (stored.values) {
      const [dim, out] = stored.values, group = Math.floor((at.head * stored.groups) / site.heads);
      const v = new Float32Array(await this.chunk(`v-${s}-${l}`), (group * cols + key) * dim * 4, dim).slice();
      const weights = new Float32Array(await this.chunk(`wo-${s}-${l}`)), share = new Float32Array(out);
      for (let o = 0; o < out; o++) {
        for (let d = 0; d < dim; d++) share[o] += weight * v[d] * weights[o * site.heads * dim + at.head * dim + d];
      }
      buffers.push(v.buffer, share.buffer);
    }
    return { head, buffers };
  }

  /** @param {any} request */
  async neurons({ at, query, keys }) {
    const data = await this.head(at, at.head), out = new Float32Array((keys[1] - keys[0]) * data.dim);
    for (let j = keys[0]; j < keys[1]; j++) out.set(new Float32Array(vector(data, "k", j)), (j - keys[0]) * data.dim);
    return { head: {}, buffers: [vector(data, "q", query), out.buffer] };
  }
}

/**
 * One vector of q or k, as f32.
 * @param {HeadData} head
 * @param {"q" | "k"} which
 * @param {number} at
 * @returns {ArrayBuffer}
 */
function vector(head, which, at) {
  if (!head.half) return head[which].slice(at * head.dim * 4, (at + 1) * head.dim * 4);
  const bits = new Uint16Array(head[which], at * head.dim * 2, head.dim);
  return Float32Array.from(bits, widened).buffer;
}

/** @param {number} bits */
function widened(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}
