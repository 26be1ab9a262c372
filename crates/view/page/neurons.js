// The neuron view: q, every k and their product, dimension by dimension, and the score that these add up to.

import { shorten } from "./painter.js";
import { number } from "./look.js";
import { say } from "./messages.js";

/**
 * @typedef {object} Neurons
 * @property {string} query
 * @property {string[]} keys
 * @property {Float32Array} q [d]
 * @property {Float32Array} k [keys, d]
 * @property {Float32Array} weights Of the keys.
 */

const LABELS = 130, TOP = 44;

/**
 * @param {any} painter
 * @param {Neurons} neurons
 * @param {import("./look.js").Look} look
 * @param {{width: number, height: number}} total
 * @param {number} digits
 */
export function drawNeurons(painter, { query, keys, q, k, weights }, look, total, digits) {
  const dim = q.length, step = Math.max(14, Math.min(26, (total.height - TOP - 30) / (keys.length + 1)));
  const wide = Math.max(1.5, Math.min(14, (total.width - LABELS - 160) / 2 / dim)), half = wide * dim, gap = 18;
  const colour = (/** @type {number} */ value, /** @type {number} */ peak) => {
    const p = look.difference[Math.max(0, Math.min(255, Math.round(127.5 - (127.5 * value) / (peak || 1))))];
    return `rgb(${p & 255},${(p >> 8) & 255},${(p >> 16) & 255})`;
  };
  const peakOf = (/** @type {ArrayLike<number>} */ values) => Array.from(values).reduce((max, value) => Math.max(max, Math.abs(value)), 0);
  const products = k.map((value, at) => value * q[at % dim]), peaks = [peakOf(q), peakOf(k), peakOf(products)];
  const heading = { size: 11.5, fill: look.muted, bold: true };
  painter.text(LABELS, 12, "q, k", heading);
  painter.text(LABELS + half + gap, 12, "q × k", heading);
  painter.text(LABELS + 2 * half + 2 * gap + 44, 12, "q·k", { ...heading, align: "end" });
  painter.text(LABELS + 2 * half + 2 * gap + 104, 12, say("weight"), { ...heading, align: "end" });
  const bar = (/** @type {number} */ x, /** @type {number} */ y, /** @type {ArrayLike<number>} */ values, /** @type {number} */ peak) => {
    for (let d = 0; d < dim; d++) painter.rect(x + d * wide, y - step * 0.36, wide, step * 0.72, colour(values[d], peak));
    painter.frame(x, y - step * 0.36, half, step * 0.72, look.rule);
  };
  painter.text(LABELS - 8, 32, shorten(query, 13, LABELS - 16), { size: 13, fill: look.mark, bold: true, align: "end" });
  bar(LABELS, 32, q, peaks[0]);
  keys.forEach((key, j) => {
    const y = TOP + (j + 0.7) * step, part = products.subarray(j * dim, (j + 1) * dim);
    painter.text(LABELS - 8, y, shorten(key, Math.min(13, step * 0.86), LABELS - 16), { size: Math.min(13, step * 0.86), fill: look.ink, align: "end" });
    bar(LABELS, y, k.subarray(j * dim, (j + 1) * dim), peaks[1]);
    bar(LABELS + half + gap, y, part, peaks[2]);
    const score = part.reduce((sum, value) => sum + value, 0);
    const style = { size: Math.min(12, step * 0.86), fill: look.ink, align: "end" }, right = LABELS + 2 * half + 2 * gap;
    painter.text(right + 44, y, number(score, Math.min(2, digits)), style);
    painter.text(right + 104, y, number(weights[j], digits), style);
  });
}
