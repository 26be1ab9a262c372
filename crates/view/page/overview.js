// All heads at a glance: a small picture of each, layers down, heads across.

import { say } from "./messages.js";

/**
 * @typedef {object} Small
 * @property {number} rows
 * @property {number} cols
 * @property {number[]} max
 * @property {boolean} sampled
 * @property {Uint8Array} codes
 */

/**
 * @typedef {object} Glance
 * @property {Small} small
 * @property {number[]} layers
 * @property {number} heads
 * @property {number} layer
 * @property {number} head
 * @property {(layer: number, head: number) => boolean} isOff
 */

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Glance} glance
 * @param {import("./look.js").Look} look
 */
export function drawOverview(canvas, { small, layers, heads, layer, head, isOff }, look) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 300, margin = 22, gap = heads > 16 ? 1 : 3;
  const side = Math.max(4, Math.min(64, (width - margin) / heads - gap)), step = side + gap;
  const height = margin + layers.length * step;
  canvas.style.height = `${height}px`;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(ratio, ratio);
  context.imageSmoothingEnabled = side < small.rows;
  context.font = "10.5px system-ui, sans-serif";
  context.fillStyle = look.muted;
  context.textAlign = "center";
  const every = Math.ceil(18 / step);
  for (let h = 0; h < heads; h += every) context.fillText(String(h), margin + h * step + side / 2, 12);
  const part = document.createElement("canvas"), size = small.rows * small.cols;
  [part.width, part.height] = [small.cols, small.rows];
  const inner = /** @type {CanvasRenderingContext2D} */ (part.getContext("2d"));
  layers.forEach((number, l) => {
    if (l % Math.ceil(14 / step) === 0) {
      context.fillStyle = look.muted;
      context.fillText(String(number), 9, margin + l * step + side / 2 + 4);
    }
    for (let h = 0; h < heads; h++) {
      const image = inner.createImageData(small.cols, small.rows), out = new Uint32Array(image.data.buffer);
      for (let k = 0; k < size; k++) {
        const code = small.codes[(l * heads + h) * size + k];
        out[k] = code === 255 ? look.nan[k % 2] : look.table[code];
      }
      inner.putImageData(image, 0, 0);
      const [x, y] = [margin + h * step, margin + l * step];
      context.globalAlpha = isOff(number, h) ? 0.25 : 1;
      context.drawImage(part, x, y, side, side);
      context.globalAlpha = 1;
      context.lineWidth = 1;
      context.strokeStyle = look.rule;
      context.strokeRect(x, y, side, side);
      if (isOff(number, h)) {
        context.strokeStyle = look.ink;
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(x + side, y + side);
        context.stroke();
      }
      if (number === layer && (h === head || heads === 1)) {
        context.lineWidth = 2.5;
        context.strokeStyle = look.mark;
        context.strokeRect(x - 1, y - 1, side + 2, side + 2);
      }
    }
  });
  canvas.setAttribute("aria-label", `${say("overview")}: ${layers.length} × ${heads}`);
  return { margin, step };
}
