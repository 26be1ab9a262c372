// A worker of the file: takes one job after another. Heads that were sent once are kept.

import { Engine } from "./engine.js";
import { pooled, scaledBy } from "./matrix.js";

/** @typedef {import("./engine.js").HeadData} HeadData */

/**
 * @typedef {object} Job
 * @property {number} id
 * @property {"tile" | "map" | "cell" | "rollout"} kind
 * @property {string[]} heads Keys of the heads; more than one are averaged.
 * @property {HeadData[]} load Those that this worker has not seen yet.
 * @property {(Float32Array | null)[]} norms Of each head.
 * @property {[number, number]} rows
 * @property {[number, number]} cols
 * @property {[number, number]} size
 * @property {boolean} mean
 * @property {Float32Array | null} before The rollout of the layer below.
 */

/** Bytes of heads to keep. */
const KEEP = 96e6;

/** @type {Engine} */
let engine;
/** @type {Map<string, HeadData>} */
const heads = new Map();

/** @param {Job} job */
function matrix(job) {
  const wide = job.cols[1] - job.cols[0];
  // Norms scale columns, so a map of them is one of all columns first.
  const all = job.norms.some(Boolean);
  /** @type {Float32Array | null} */
  let sum = null;
  job.heads.forEach((key, at) => {
    const head = /** @type {HeadData} */ (heads.get(key));
    let part;
    if (job.kind !== "map") {
      part = scaledBy(engine.tile(head, job.rows, job.cols), wide, job.norms[at], job.cols[0]);
    } else if (all) {
      const tall = scaledBy(engine.map(head, job.rows, job.cols, [job.size[0], wide], job.mean), wide, job.norms[at], job.cols[0]);
      part = pooled({ values: tall, rows: job.size[0], cols: wide }, job.size, job.mean);
    } else {
      part = engine.map(head, job.rows, job.cols, job.size, job.mean);
    }
    if (!sum) sum = part;
    else for (let k = 0; k < part.length; k++) sum[k] += part[k];
  });
  const out = /** @type {Float32Array} */ (/** @type {unknown} */ (sum));
  if (job.heads.length > 1) for (let k = 0; k < out.length; k++) out[k] /= job.heads.length;
  return out;
}

/** @param {Job} job */
function rollout(job) {
  const mixed = matrix(job), n = job.rows[1];
  for (let k = 0; k < mixed.length; k++) mixed[k] *= 0.5;
  for (let i = 0; i < n; i++) mixed[i * n + i] += 0.5;
  return job.before ? engine.multiply(mixed, job.before, n) : mixed;
}

/** @param {Job} job */
function run(job) {
  for (const head of job.load) heads.set(head.key, head);
  for (const key of job.heads) {
    // The last ones used are the last ones forgotten.
    const head = /** @type {HeadData} */ (heads.get(key));
    heads.delete(key);
    heads.set(key, head);
  }
  const dropped = [];
  let bytes = 0;
  for (const [key, head] of [...heads].reverse()) {
    bytes += head.q.byteLength + head.k.byteLength + head.lse.byteLength;
    if (bytes > KEEP && !job.heads.includes(key)) {
      heads.delete(key);
      dropped.push(key);
    }
  }
  const head = /** @type {HeadData} */ (heads.get(job.heads[0]));
  if (job.kind === "cell") return { steps: engine.cell(head, job.rows[0], job.cols[0]), dropped };
  return { values: job.kind === "rollout" ? rollout(job) : matrix(job), dropped };
}

self.onmessage = ({ data }) => {
  if (data.module) {
    engine = new Engine(data.module);
    return;
  }
  try {
    const result = run(data);
    /** @type {any} */ (self).postMessage({ id: data.id, ...result }, result.values ? [result.values.buffer] : []);
  } catch (error) {
    self.postMessage({ id: data.id, error: String(/** @type {Error} */ (error).message ?? error) });
  }
};
