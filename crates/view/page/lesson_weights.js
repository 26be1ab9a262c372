// Weights of small matrices, by the engine.

import { Engine } from "./engine.js";

/** Numbers of a head's options: scale, softcap, left, right, offset, length, slope, sink. */
const [SCALE, OFFSET, LENGTH, SLOPE, COUNT] = [0, 4, 5, 6, 8];
/** What a cell's arithmetic gives. */
const SCORE = 3;

const wasm = Uint8Array.from(atob(document.getElementById("wasm")?.textContent ?? ""), (c) => c.charCodeAt(0));
const engine = new Engine(new WebAssembly.Module(wasm));
let loads = 0;

/**
 * @typedef {object} Asked
 * @property {number[][]} q
 * @property {number[][]} k
 * @property {number} scale
 * @property {number} [slope] ALiBi's.
 * @property {(i: number, j: number) => boolean} [visible] What a query may see; everything if absent.
 */

/**
 * The weights, and the scores that they come from. A row that sees nothing is all 0.
 * @param {Asked} asked
 */
export function attend({ q, k, scale, slope = 0, visible = () => true }) {
  const [queries, keys, dim] = [q.length, k.length, q[0].length];
  const options = new Array(COUNT).fill(null);
  [options[SCALE], options[OFFSET], options[LENGTH], options[SLOPE]] = [scale, 0, keys, slope];
  const floats = (/** @type {number[][]} */ rows) => new Float32Array(rows.flat()).buffer;
  const head = { key: "", queries, keys, dim, half: false, q: floats(q), k: floats(k), lse: new ArrayBuffer(0), options };
  const load = (/** @type {number[]} */ lse) => ({ ...head, key: `${++loads}`, lse: new Float64Array(lse).buffer });
  const first = load(new Array(queries).fill(0));
  const scores = q.map((_, i) => k.map((_, j) => engine.cell(first, i, j)[SCORE]));
  // The log-sum-exp of what is visible; with it the engine gives every weight: w = exp(s − lse).
  const lse = scores.map((row, i) => {
    const seen = row.filter((_, j) => visible(i, j)), max = Math.max(...seen);
    return seen.length ? max + Math.log(seen.reduce((sum, s) => sum + Math.exp(s - max), 0)) : 0;
  });
  const tile = engine.tile(load(lse), [0, queries], [0, keys]);
  const weights = q.map((_, i) => k.map((_, j) => (visible(i, j) ? tile[i * keys + j] : 0)));
  return { scores, weights };
}

/**
 * Weights times values.
 * @param {number[][]} weights
 * @param {number[][]} v
 */
export function mix(weights, v) {
  return weights.map((row) => v[0].map((_, d) => row.reduce((sum, w, j) => sum + w * v[j][d], 0)));
}

/** Random numbers of a normal distribution: the same ones every time. @param {number} seed */
export function normal(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return (((x ^ (x >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}
