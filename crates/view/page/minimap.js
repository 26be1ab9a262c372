// Where the part in sight lies in the whole: a small map in the corner, once one has zoomed in.

/**
 * @param {HTMLCanvasElement} canvas
 * @param {import("./map.js").Picture} picture
 * @param {import("./map.js").Plot} plot
 */
export function drawMinimap(canvas, { tiles, rows, cols, look, scale }, { part }) {
  const all = (part.bottom - part.top) * (part.right - part.left) >= rows.length * cols.length * 0.98;
  const top = tiles.get(tiles.top, 0, 0);
  canvas.hidden = all || !top;
  if (all || !top) return;
  const side = 116, ratio = window.devicePixelRatio || 1, unit = side / Math.max(rows.length, cols.length);
  const [width, height] = [Math.max(12, cols.length * unit), Math.max(12, rows.length * unit)];
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(ratio, ratio);
  context.drawImage(tiles.picture(top, look, scale), 0, 0, width, height);
  context.strokeStyle = look.mark;
  context.lineWidth = 2;
  const [x, y] = [width / cols.length, height / rows.length];
  context.strokeRect(part.left * x, part.top * y, Math.max(4, (part.right - part.left) * x), Math.max(4, (part.bottom - part.top) * y));
}
