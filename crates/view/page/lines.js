// Queries at the left, keys at the right, and a line for each weight, the stronger the darker. Several heads have a colour
// each, as in BertViz's head view.

import { measure, shorten } from "./painter.js";
import { SCALES } from "./look.js";
import { say } from "./messages.js";

/**
 * @typedef {object} Window A part of the matrix that fits on the stage as lines or as a table.
 * @property {[number, number]} rows Entries.
 * @property {[number, number]} cols
 * @property {{head: number, values: Float32Array}[]} heads
 */

/**
 * @typedef {object} LinesPicture
 * @property {import("./axis.js").Axis} rows
 * @property {import("./axis.js").Axis} cols
 * @property {Window} window
 * @property {import("./look.js").Look} look
 * @property {string} scale
 * @property {{i: number, j: number} | null} hover
 * @property {number} pinned
 * @property {boolean} many Whether heads are told apart by colour.
 */

/**
 * @param {LinesPicture} picture
 * @param {{width: number, height: number}} total
 */
export function linesPlot({ rows, cols, window }, total) {
  const count = Math.max(window.rows[1] - window.rows[0], window.cols[1] - window.cols[0]);
  const step = Math.max(13, Math.min(26, (total.height - 40) / count)), size = Math.min(13, step * 0.86);
  const longest = (/** @type {import("./axis.js").Axis} */ axis, /** @type {[number, number]} */ [from, to]) =>
    Math.min(160, axis.entries.slice(from, to).reduce((max, entry) => Math.max(max, 1.1 * measure(entry.label, size)), 30));
  const left = longest(rows, window.rows) + 12, side = longest(cols, window.cols) + 12;
  const right = Math.max(left + 120, Math.min(total.width - side, left + 560));
  return { left, right, top: 34, step, size, total };
}

/**
 * @param {any} painter
 * @param {LinesPicture} picture
 * @param {ReturnType<typeof linesPlot>} plot
 */
export function drawLines(painter, { rows, cols, window, look, scale, hover, pinned, many }, { left, right, top, step, size }) {
  const wide = window.cols[1] - window.cols[0], y = (/** @type {number} */ k) => top + (k + 0.5) * step, bend = (right - left) * 0.4;
  const chosen = pinned >= 0 ? pinned : hover && hover.i >= 0 ? hover.i : -1, chosenKey = chosen < 0 && hover ? hover.j : -1;
  /** @type {[number, number, number, number, string][]} */
  const lines = [];
  for (const [h, { head, values }] of window.heads.entries()) {
    const peak = values.reduce((a, b) => (b > a ? b : a), 0) || 1;
    for (let k = 0; k < values.length; k++) {
      const t = SCALES[scale].to(values[k] / peak);
      if (!(t >= 0.02)) continue;
      const i = Math.floor(k / wide) + window.rows[0], j = (k % wide) + window.cols[0];
      const faded = (chosen >= 0 && i !== chosen) || (chosenKey >= 0 && j !== chosenKey);
      const shift = many ? (h - (window.heads.length - 1) / 2) * Math.min(2.5, (step * 0.6) / window.heads.length) : 0;
      lines.push([faded ? t * 0.06 : t, i, j, shift, many ? look.heads[head % look.heads.length] : look.accent]);
    }
  }
  lines.sort((a, b) => b[0] - a[0]);
  for (const [t, i, j, shift, colour] of lines.slice(0, 4000).reverse()) {
    painter.curve(left, y(i - window.rows[0]) + shift, right, y(j - window.cols[0]) + shift, colour, 0.6 + 2.2 * t, 0.08 + 0.85 * t, bend);
  }
  const name = { size: 11.5, fill: look.muted, bold: true };
  painter.text(left - 8, 12, say("query"), { ...name, align: "end" });
  painter.text(right + 8, 12, say("key"), name);
  for (let i = window.rows[0]; i < window.rows[1]; i++) {
    painter.text(left - 8, y(i - window.rows[0]), shorten(rows.entries[i].label, size, 160), { size, align: "end", bold: i === chosen, fill: rows.entries[i].special ? look.muted : look.ink });
  }
  for (let j = window.cols[0]; j < window.cols[1]; j++) {
    painter.text(right + 8, y(j - window.cols[0]), shorten(cols.entries[j].label, size, 160), { size, bold: j === chosenKey, fill: cols.entries[j].special ? look.muted : look.ink });
  }
}

/**
 * The token under a point: a query at the left half, a key at the right.
 * @param {LinesPicture} picture
 * @param {ReturnType<typeof linesPlot>} plot
 * @param {number} px
 * @param {number} py
 */
export function tokenAt({ window }, { left, right, top, step }, px, py) {
  const k = Math.floor((py - top) / step), isQuery = px < (left + right) / 2;
  const [from, to] = isQuery ? window.rows : window.cols;
  if (k < 0 || k >= to - from) return null;
  return isQuery ? { i: from + k, j: -1 } : { i: -1, j: from + k };
}
