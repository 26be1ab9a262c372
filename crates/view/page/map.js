// The map: a part of the matrix at any zoom, from all of it to single numbers. Drawn on a canvas or written as SVG.

import { measure, shorten } from "./painter.js";
import { SIDE } from "./tiles.js";
import { SCALES, number } from "./look.js";
import { say } from "./messages.js";

/** @typedef {import("./state.js").Rect} Rect */

/**
 * @typedef {object} Plot Where everything is.
 * @property {number} left
 * @property {number} top
 * @property {number} width Of the matrix in sight.
 * @property {number} height
 * @property {number} cell Pixels an entry.
 * @property {Rect} part Entries in sight.
 * @property {{width: number, height: number}} total
 */

/**
 * @typedef {object} Picture What is drawn.
 * @property {import("./axis.js").Axis} rows
 * @property {import("./axis.js").Axis} cols
 * @property {import("./tiles.js").TileSet} tiles
 * @property {import("./look.js").Look} look
 * @property {string} scale
 * @property {number} digits
 * @property {{i: number, j: number} | null} hover
 * @property {number} pinned
 * @property {{i: number, j: number} | null} chosen
 */

/** Largest size of a cell. */
export const MOST_CELL = 64;
const LABELS = 120, BAR = 66, SMALL = 11.5;

/** @param {import("./axis.js").Axis} axis */
function longest(axis) {
  let max = 30;
  for (let k = 0; k < Math.min(axis.length, 400); k++) max = Math.max(max, measure(axis.entries[k].label, 13));
  return Math.min(LABELS, max * 1.05 + 4);
}

/**
 * The room for the matrix on a stage of this size.
 * @param {Picture} picture
 * @param {{width: number, height: number}} total
 */
export function room({ rows, cols }, total) {
  const wide = Math.max(rows.length > 99 ? 92 : 0, longest(rows)), left = Math.min(total.width * 0.3, 24 + wide + 8);
  const top = 20 + Math.min(longest(cols) * 0.75 + 16, 104);
  return { left, top, width: Math.max(60, total.width - left - BAR), height: Math.max(60, total.height - top - 6) };
}

/**
 * The part of the matrix around a wish: as large as the stage allows, within the matrix.
 * @param {Picture} picture
 * @param {{width: number, height: number}} total
 * @param {Rect | null} wish
 * @returns {Plot}
 */
export function plot(picture, total, wish) {
  const space = room(picture, total), { rows, cols } = picture;
  const fit = Math.min(space.width / cols.length, space.height / rows.length, MOST_CELL);
  const wanted = wish ? Math.min(space.width / (wish.right - wish.left), space.height / (wish.bottom - wish.top)) : fit;
  const cell = Math.max(fit, Math.min(MOST_CELL, wanted));
  const wide = Math.min(cols.length, space.width / cell), tall = Math.min(rows.length, space.height / cell);
  const left = Math.max(0, Math.min(wish ? wish.left : 0, cols.length - wide)), top = Math.max(0, Math.min(wish ? wish.top : 0, rows.length - tall));
  return {
    left: space.left, top: space.top, width: wide * cell, height: tall * cell, cell, total,
    part: { top, left, bottom: top + tall, right: left + wide },
  };
}

/** The level whose pixels are at most a bit smaller than those of the screen. @param {Plot} plot @param {number} top */
export const levelOf = ({ cell }, top) => Math.max(0, Math.min(top, Math.ceil(Math.log2(1 / cell) - 0.25)));

/** The tiles in sight, those in the middle first. @param {Picture} picture @param {Plot} plot */
export function inSight({ tiles }, plot) {
  const z = levelOf(plot, tiles.top), span = SIDE * 2 ** z, { part } = plot, keys = [];
  const [cy, cx] = [(part.top + part.bottom) / 2 / span - 0.5, (part.left + part.right) / 2 / span - 0.5];
  for (let y = Math.floor(part.top / span); y * span < part.bottom; y++) {
    for (let x = Math.floor(part.left / span); x * span < part.right; x++) keys.push({ key: `${z}/${y}/${x}`, far: (y - cy) ** 2 + (x - cx) ** 2, z, y, x });
  }
  return keys.sort((a, b) => a.far - b.far);
}

/**
 * @param {any} painter
 * @param {Picture} picture
 * @param {Plot} plot
 */
export function drawMap(painter, picture, plot) {
  const { look, hover, chosen, pinned, tiles, scale } = picture, { left, top, cell, width, height, part } = plot;
  const x = (/** @type {number} */ j) => left + (j - part.left) * cell, y = (/** @type {number} */ i) => top + (i - part.top) * cell;
  painter.clip(left, top, width, height);
  painter.rect(left, top, width, height, look.css(0));
  for (const { z, y: row, x: col } of inSight(picture, plot)) drawTile(painter, { tiles, look, scale, x, y, cell, z, row, col });
  const rows = [Math.floor(part.top), Math.min(picture.rows.length, Math.ceil(part.bottom))];
  const cols = [Math.floor(part.left), Math.min(picture.cols.length, Math.ceil(part.right))];
  if (cell >= 12) {
    for (let i = rows[0] + 1; i < rows[1]; i++) painter.line(left, y(i), left + width, y(i), look.paper);
    for (let j = cols[0] + 1; j < cols[1]; j++) painter.line(x(j), top, x(j), top + height, look.paper);
  }
  if (cell >= 26) drawNumbers(painter, picture, { x, y, cell, rows, cols });
  const frame = (/** @type {{i: number, j: number}} */ at, /** @type {string} */ stroke, /** @type {number} */ thick) => painter.frame(x(at.j), y(at.i), Math.max(cell, 3), Math.max(cell, 3), stroke, thick);
  if (hover && !painter.vector) {
    painter.frame(left - 1, y(hover.i), width + 2, Math.max(cell, 1), look.muted);
    if (hover.j >= 0) painter.frame(x(hover.j), top - 1, Math.max(cell, 1), height + 2, look.muted);
  }
  if (pinned >= 0) painter.frame(left + 1, y(pinned), width - 2, Math.max(2, cell), look.mark, 2);
  if (chosen) frame(chosen, look.mark, 2.5);
  painter.unclip();
  painter.frame(left - 0.5, top - 0.5, width + 1, height + 1, look.rule);
  const name = { size: SMALL, fill: look.muted, bold: true, align: "middle" };
  painter.text(left + Math.max(width / 2, 20), 8, say("key"), name);
  painter.text(8, top + height / 2, say("query"), { ...name, turn: -90 });
  drawLabels(painter, picture, plot, { rows, cols });
  drawBar(painter, picture, plot);
}

/**
 * A tile, or what there is of it in a coarser one.
 * @param {any} painter
 * @param {any} place
 */
function drawTile(painter, { tiles, look, scale, x, y, cell, z, row, col }) {
  const span = SIDE * 2 ** z, top = row * span, left = col * span;
  const bottom = Math.min(tiles.rows.length, top + span), right = Math.min(tiles.cols.length, left + span);
  for (let up = z; up <= tiles.top; up++) {
    const step = 2 ** (up - z), tile = tiles.get(up, Math.floor(row / step), Math.floor(col / step));
    if (!tile) continue;
    const size = 2 ** up, origin = [Math.floor(row / step) * SIDE * size, Math.floor(col / step) * SIDE * size];
    const part = [(top - origin[0]) / size, (left - origin[1]) / size, (bottom - top) / size, (right - left) / size];
    painter.image(tiles.picture(tile, look, scale), part[1], part[0], part[3], part[2], x(left), y(top), (right - left) * cell, (bottom - top) * cell);
    return;
  }
}

/** @param {any} painter @param {Picture} picture @param {any} place */
function drawNumbers(painter, { tiles, look, scale }, { x, y, cell, rows, cols }) {
  const size = cell >= 48 ? 13 : cell >= 36 ? 11.5 : 9.5, { to } = SCALES[scale];
  for (let i = rows[0]; i < rows[1]; i++) {
    for (let j = cols[0]; j < cols[1]; j++) {
      const value = tiles.value(i, j);
      if (value === undefined || !(value > 0)) continue;
      const full = value.toFixed(value >= 10 ? 0 : cell >= 44 && tiles.peak < 0.3 ? 3 : 2);
      const text = cell < 36 ? (full === "1.00" ? "1" : full === "0.00" ? "0" : full.replace(/^0/, "")) : full;
      const t = to(value / (tiles.peak || 1));
      // Weights near 0 are many; they recede.
      painter.text(x(j + 0.5), y(i + 0.5), text, { size, fill: t < 0.04 ? look.muted : look.inkOn(t), align: "middle" });
    }
  }
}

/** Every label where there is room, else some, with their numbers. @param {any} painter @param {Picture} picture @param {Plot} plot @param {{rows: number[], cols: number[]}} range */
function drawLabels(painter, { rows, cols, look, hover, pinned }, { left, top, cell, part, width, height }, range) {
  const size = Math.max(10, Math.min(13, cell * 0.86)), every = (/** @type {number} */ least) => {
    const step = least / cell;
    if (step <= 1) return 1;
    const power = 10 ** Math.floor(Math.log10(step));
    return Math.max(1, Math.round([1, 2, 5, 10].map((m) => m * power).find((s) => s >= step) ?? step));
  };
  const ink = (/** @type {boolean} */ chosen, /** @type {boolean} */ special) => ({ size, fill: special ? look.muted : look.ink, bold: chosen });
  const name = (/** @type {import("./axis.js").Entry} */ entry, /** @type {number} */ at, /** @type {number} */ step) => (step > 1 ? `${at} ${entry.label}` : entry.label);
  const down = every(11);
  for (let i = Math.ceil(range.rows[0] / down) * down; i < range.rows[1]; i += down) {
    const y = top + (i + 0.5 - part.top) * cell;
    if (y < top || y > top + height) continue;
    painter.text(left - 7, y, shorten(name(rows.entries[i], i, down), size, left - 32), { ...ink(i === hover?.i || i === pinned, rows.entries[i].special), align: "end" });
  }
  const across = every(cell >= 9 ? 9 : 17), widest = Math.max(...Array.from({ length: Math.min(60, range.cols[1] - range.cols[0]) }, (_, k) => measure(cols.entries[range.cols[0] + k].label, size)));
  const level = across === 1 && widest <= cell - 6, turn = level ? 0 : cell >= 17 || across > 1 ? -45 : -90;
  for (let j = Math.ceil(range.cols[0] / across) * across; j < range.cols[1]; j += across) {
    const x = left + (j + 0.5 - part.left) * cell;
    if (x < left || x > left + width) continue;
    painter.text(x, top - (level ? 13 : 8), shorten(name(cols.entries[j], j, across), size, turn === -45 ? 1.25 * (top - 24) : top - 24), { ...ink(j === hover?.j, cols.entries[j].special), turn, align: level ? "middle" : "start" });
  }
}

/** @param {any} painter @param {Picture} picture @param {Plot} plot */
function drawBar(painter, { tiles, look, scale }, { left, top, width, height }) {
  const x = left + width + 16, tall = Math.min(Math.max(height, 90), 260), steps = 64;
  for (let k = 0; k < steps; k++) painter.rect(x, top + (k * tall) / steps, 11, tall / steps + 0.5, look.css(1 - (k + 0.5) / steps));
  painter.frame(x, top, 11, tall, look.rule);
  for (const t of [0, 0.5, 1]) {
    const value = tiles.peak * SCALES[scale].from(t);
    const text = value === 0 ? "0" : value >= 0.001 ? Number(value.toPrecision(2)).toString() : value.toExponential(0);
    painter.text(x + 16, top + tall * (1 - t) + (t === 0 ? -5 : t === 1 ? 5 : 0), text, { size: SMALL, fill: look.muted });
  }
}

/**
 * The cell under a point, or nothing; j is −1 over the labels of rows.
 * @param {Picture} picture
 * @param {Plot} plot
 * @param {number} px
 * @param {number} py
 */
export function cellAt({ rows, cols }, { left, top, cell, width, height, part }, px, py) {
  if (py < top || py >= top + height || px >= left + width) return null;
  const i = Math.floor(part.top + (py - top) / cell), j = Math.floor(part.left + (px - left) / cell);
  return i >= 0 && i < rows.length && j < cols.length ? { i, j: px < left ? -1 : j } : null;
}

/**
 * What the map says about a cell: its exact weight, or what its pixel pools.
 * @param {Picture} picture
 * @param {Plot} plot
 * @param {{i: number, j: number}} at
 */
export function valueText({ tiles, rows, cols, digits }, plot, { i, j }) {
  const z = levelOf(plot, tiles.top), step = 2 ** z;
  if (z === 0) {
    const value = tiles.value(i, j);
    return value === undefined ? "…" : number(value, digits);
  }
  const tile = tiles.get(z, Math.floor(i / (SIDE * step)), Math.floor(j / (SIDE * step)));
  if (!tile) return "…";
  const value = tile.values[Math.floor((i % (SIDE * step)) / step) * tile.cols + Math.floor((j % (SIDE * step)) / step)];
  const size = { rows: Math.min(step, rows.length - Math.floor(i / step) * step), cols: Math.min(step, cols.length - Math.floor(j / step) * step) };
  return `${number(value, digits)}  ${say("pooled", { how: say(tiles.what.pool === "mean" ? "pool_mean" : "max"), ...size })}`;
}
