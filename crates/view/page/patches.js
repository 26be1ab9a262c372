// An image that a model has read: each patch as bright as the chosen one attends to it.

import { $ } from "./dom.js";

/** @typedef {import("./app.js").App} App */

/** @type {{png: string, picture: HTMLImageElement} | null} */
let loaded = null;

/**
 * The image of a run with what a row attends to; patches are the last tokens of their axis.
 * @param {App} app
 */
export function drawPatches(app) {
  const image = app.run.image, section = $("image-section");
  section.hidden = !image;
  if (!image || !app.look) return;
  if (loaded?.png !== image.png) {
    const picture = new Image();
    picture.onload = () => app.redraw();
    picture.src = `data:image/png;base64,${image.png}`;
    loaded = { png: image.png, picture };
  }
  const canvas = /** @type {HTMLCanvasElement} */ ($("image")), context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const width = canvas.clientWidth || 300, side = width / image.width, height = side * image.height, ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  context.scale(ratio, ratio);
  context.imageSmoothingEnabled = false;
  if (loaded.picture.complete) context.drawImage(loaded.picture, 0, 0, width, height);
  const first = firstPatch(app), row = app.row;
  let max = 0;
  if (row) for (const value of row) if (value > max) max = value;
  for (let k = 0; row && k < image.width * image.height; k++) {
    context.globalAlpha = 0.78 * (1 - (row[first + k] ?? 0) / (max || 1));
    context.fillStyle = app.look.paper;
    context.fillRect((k % image.width) * side, Math.floor(k / image.width) * side, side, side);
  }
  context.globalAlpha = 1;
  const pinned = app.pinned - first;
  if (pinned < 0) return;
  context.strokeStyle = app.look.mark;
  context.lineWidth = 2.5;
  context.strokeRect((pinned % image.width) * side, Math.floor(pinned / image.width) * side, side, side);
}

/** @param {App} app */
const firstPatch = (app) => (app.cols?.length ?? 0) - (app.run.image ? app.run.image.width * app.run.image.height : 0);

/** A click pins a patch. @param {App} app */
export function listenToPatches(app) {
  $("image").addEventListener("click", (/** @type {MouseEvent} */ event) => {
    const { image } = app.run, box = $("image").getBoundingClientRect();
    if (!image) return;
    const x = Math.floor(((event.clientX - box.left) / box.width) * image.width), y = Math.floor(((event.clientY - box.top) / box.height) * image.height);
    app.pin(firstPatch(app) + y * image.width + x);
  });
}
