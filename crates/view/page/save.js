// What is in sight as a file of its own: SVG, PNG, JSON or CSV.

import { CanvasPainter, SvgPainter, measure } from "./painter.js";

const MARGIN = 24;

/** @param {string} name @param {Blob} blob */
function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/**
 * @typedef {object} Figure
 * @property {string} name Of the file, without ending.
 * @property {string} title
 * @property {string} note
 * @property {import("./look.js").Look} look
 * @property {{width: number, height: number}} size
 * @property {(painter: any) => void} paint
 */

/** Paints a figure and returns its size. @param {any} painter @param {Figure} figure @param {(x: number, y: number) => void} shift */
function compose(painter, { title, note, look, size, paint }, shift) {
  let y = MARGIN;
  if (title) painter.text(MARGIN, (y += 8), title, { size: 18, fill: look.ink, bold: true });
  if (note) painter.text(MARGIN, (y += title ? 22 : 6), note, { size: 13, fill: look.muted });
  if (title || note) y += 22;
  shift(MARGIN, y);
  paint(painter);
  const widest = Math.max(size.width, 1.05 * measure(title, 18), measure(note, 13));
  return { width: widest + 2 * MARGIN, height: y + size.height + MARGIN };
}

/** @param {Figure} figure */
export function saveSvg(figure) {
  const painter = new SvgPainter();
  const size = compose(painter, figure, (x, y) => painter.shift(x, y));
  download(`${figure.name}.svg`, new Blob([painter.finish(size.width, size.height, figure.look.paper)], { type: "image/svg+xml" }));
}

/** @param {Figure} figure */
export function savePng(figure) {
  const ratio = 2, canvas = document.createElement("canvas"), context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  // Once to learn its size, which a canvas must know before it is drawn on.
  const size = compose(new CanvasPainter(context), figure, () => {});
  [canvas.width, canvas.height] = [Math.ceil(size.width * ratio), Math.ceil(size.height * ratio)];
  context.scale(ratio, ratio);
  context.fillStyle = figure.look.paper;
  context.fillRect(0, 0, canvas.width, canvas.height);
  compose(new CanvasPainter(context), figure, (x, y) => context.translate(x, y));
  canvas.toBlob((blob) => blob && download(`${figure.name}.png`, blob), "image/png");
}

/**
 * @typedef {object} Numbers
 * @property {string[]} queries
 * @property {string[]} keys
 * @property {Float32Array} values
 */

/** @param {string} name @param {Numbers} numbers @param {object} about */
export function saveJson(name, { queries, keys, values }, about) {
  const rows = queries.map((_, i) => [...values.subarray(i * keys.length, (i + 1) * keys.length)].map((v) => (Number.isFinite(v) ? v : null)));
  download(`${name}.json`, new Blob([JSON.stringify({ ...about, queries, keys, values: rows })], { type: "application/json" }));
}

/** @param {string} name @param {Numbers} numbers */
export function saveCsv(name, { queries, keys, values }) {
  const quote = (/** @type {string} */ text) => (/[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const lines = [["", ...keys.map(quote)].join(",")];
  queries.forEach((query, i) => lines.push([quote(query), ...values.subarray(i * keys.length, (i + 1) * keys.length)].join(",")));
  download(`${name}.csv`, new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }));
}
