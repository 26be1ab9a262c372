// Pointer, touch and keys.

import { $ } from "./dom.js";
import { tokenAt } from "./lines.js";
import { MOST_CELL, cellAt, valueText } from "./map.js";
import { hideTerm, tour } from "./explain.js";
import { number } from "./look.js";
import { listenToPatches } from "./patches.js";
import { windowRange } from "./windows.js";

/** @typedef {import("./app.js").App} App */

/** @param {App} app */
export function listen(app) {
  const canvas = /** @type {HTMLCanvasElement} */ ($("canvas"));
  pointers(app, canvas);
  canvas.addEventListener("keydown", (event) => canvasKeys(app, event));
  canvas.addEventListener("wheel", (event) => wheel(app, event), { passive: false });
  canvas.addEventListener("dblclick", () => app.change({ at: null, pin: null }));
  document.addEventListener("keydown", (event) => pageKeys(app, event));
  window.addEventListener("resize", () => {
    app.redraw();
    app.drawSmall();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.change({}));
  $("zoom-in").addEventListener("click", () => zoom(app, 0.5));
  $("zoom-out").addEventListener("click", () => zoom(app, 2));
  $("zoom-all").addEventListener("click", () => app.change({ at: null }));
  minimap(app);
  listenToPatches(app);
  tokens(app, $("text"), () => app.square);
  tokens(app, $("queries"), () => true);
}

/** @param {MouseEvent} event @param {HTMLElement} node */
const under = (event, node) => {
  const box = node.getBoundingClientRect();
  return /** @type {[number, number]} */ ([event.clientX - box.left, event.clientY - box.top]);
};

/** Moves the part in sight so that its top left lies there. @param {App} app @param {number} top @param {number} left */
function moveTo(app, top, left) {
  const { part } = app.plot;
  app.moveTo({ top, left, bottom: top + part.bottom - part.top, right: left + part.right - part.left });
}

/**
 * Zooms so that what lies under a point stays there. `factor` below 1 looks closer.
 * @param {App} app
 * @param {number} factor
 * @param {number} [px]
 * @param {number} [py]
 */
export function zoom(app, factor, px, py) {
  const { plot } = app;
  if (app.state.view !== "map" || !plot?.part) return;
  const { part, left, top, width, height, cell } = plot;
  if (factor < 1 && cell >= MOST_CELL) return;
  const u = Math.max(0, Math.min(1, ((px ?? left + width / 2) - left) / width)), v = Math.max(0, Math.min(1, ((py ?? top + height / 2) - top) / height));
  // The room there is, not the part that fills it, sets the scale.
  const across = Math.max(1, (part.right - part.left) * factor), down = Math.max(1, (part.bottom - part.top) * factor);
  const x = part.left + (part.right - part.left) * u - across * u, y = part.top + (part.bottom - part.top) * v - down * v;
  app.moveTo({ left: x, top: y, right: x + across, bottom: y + down });
}

/** @param {App} app @param {WheelEvent} event */
function wheel(app, event) {
  const { state, rows, cols } = app;
  if (!rows || !cols) return;
  const canvas = $("canvas"), whole = Math.max(rows.length, cols.length);
  if (state.view === "map") {
    // The page scrolls as usual where there is nothing to zoom into.
    if (!event.ctrlKey && whole < 24) return;
    event.preventDefault();
    zoom(app, Math.exp(Math.max(-200, Math.min(200, event.deltaY)) * 0.0022), ...under(event, canvas));
  } else if (whole > 60) {
    event.preventDefault();
    scroll(app, Math.sign(event.deltaY) * 3);
  }
}

/** Moves lines and tables by some entries. @param {App} app @param {number} step */
function scroll(app, step) {
  const { rows, cols } = windowRange(app);
  app.state.at = { top: rows[0] + step, left: cols[0] + step, bottom: rows[1] + step, right: cols[1] + step };
  for (const key of /** @type {const} */ (["top", "left"])) app.state.at[key] = Math.max(0, app.state.at[key]);
  app.redraw();
}

/** @param {App} app @param {HTMLCanvasElement} canvas */
function pointers(app, canvas) {
  /** @type {Map<number, [number, number]>} */
  const down = new Map();
  /** @type {any} */
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, under(event, canvas));
    const [a, b] = [...down.values()], pinch = b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0;
    drag = { from: under(event, canvas), part: app.plot?.part && { ...app.plot.part }, moved: false, pinch };
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = under(event, canvas);
    if (down.has(event.pointerId)) down.set(event.pointerId, at);
    if (down.size === 2) pinch(app, [...down.values()], drag);
    else if (down.size === 1 && drag?.part && app.state.view === "map") {
      const [dx, dy] = [at[0] - drag.from[0], at[1] - drag.from[1]];
      if (drag.moved || Math.hypot(dx, dy) > 4) {
        drag.moved = true;
        moveTo(app, drag.part.top - dy / app.plot.cell, drag.part.left - dx / app.plot.cell);
      }
    } else point(app, ...at);
  });
  const up = (/** @type {PointerEvent} */ event) => {
    down.delete(event.pointerId);
    if (drag && !drag.moved && event.type === "pointerup" && down.size === 0) press(app, ...under(event, canvas));
    if (down.size === 0) drag = null;
    else drag = { from: [...down.values()][0], part: app.plot?.part && { ...app.plot.part }, moved: true, pinch: 0 };
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => hover(app, null, 0, 0));
}

/** Two fingers: the distance zooms, their middle stays. @param {App} app @param {[number, number][]} fingers @param {any} drag */
function pinch(app, [a, b], drag) {
  const apart = Math.hypot(a[0] - b[0], a[1] - b[1]), middle = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  zoom(app, drag.pinch / Math.max(apart, 1), middle[0], middle[1]);
  drag.pinch = apart;
  drag.moved = true;
}

/** @param {App} app @param {number} px @param {number} py */
function cellUnder(app, px, py) {
  if (!app.plot) return null;
  if (app.state.view === "map") return cellAt(app.picture, app.plot, px, py);
  return (app.state.view === "lines" || app.state.view === "heads") && app.window ? tokenAt(app.linesPicture, app.plot, px, py) : null;
}

/** @param {App} app @param {number} px @param {number} py */
const point = (app, px, py) => hover(app, cellUnder(app, px, py), px, py);

/** A click: a cell's arithmetic and its query pinned. @param {App} app @param {number} px @param {number} py */
function press(app, px, py) {
  const cell = cellUnder(app, px, py);
  if (!cell) return;
  choose(app, cell);
}

/** @param {App} app @param {{i: number, j: number}} cell */
function choose(app, { i, j }) {
  const { rows, cols, state } = app;
  if (i < 0 || !rows || !cols) return;
  if (j < 0 || state.view !== "map") {
    app.pin(i);
    return;
  }
  const cell = /** @type {[number, number]} */ ([rows.entries[i].end - 1, cols.entries[j].start]);
  const again = state.cell && state.cell[0] === cell[0] && state.cell[1] === cell[1];
  state.cell = again ? null : cell;
  state.pin = again ? null : rows.entries[i].start;
  app.refreshCell();
  app.redraw();
}

/** @param {App} app @param {{i: number, j: number} | null} cell @param {number} px @param {number} py */
function hover(app, cell, px, py) {
  const tip = $("tip"), { rows, cols } = app;
  if (JSON.stringify(cell) !== JSON.stringify(app.hover)) {
    app.hover = cell;
    app.redraw();
  }
  tip.style.display = cell ? "block" : "none";
  if (!cell || !rows || !cols) return;
  const names = [cell.i >= 0 ? rows.entries[cell.i].label : null, cell.j >= 0 ? cols.entries[cell.j].label : null].filter((name) => name !== null);
  const value = document.createElement("b");
  if (cell.i >= 0 && cell.j >= 0 && app.state.view === "map") value.textContent = `  ${valueText(app.picture, app.plot, cell)}`;
  else if (cell.j >= 0 && app.row && app.pinned >= 0) value.textContent = `  ${number(app.row[cell.j], app.meta.digits)}`;
  tip.replaceChildren(names.join(" → "), value);
  const stage = $("canvas");
  tip.style.left = `${Math.max(0, Math.min(px + 14, stage.clientWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${py + 18 + tip.offsetHeight > stage.clientHeight ? py - tip.offsetHeight - 10 : py + 18}px`;
}

/** On the canvas, arrows move the cell that is looked at. @param {App} app @param {KeyboardEvent} event */
function canvasKeys(app, event) {
  const { rows, cols, plot, state } = app;
  if (!rows || !cols) return;
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (step && state.view === "map" && plot) {
    const far = event.shiftKey ? 10 : 1, from = app.hover ?? { i: Math.floor(plot.part.top), j: Math.floor(plot.part.left) };
    const clamp = (/** @type {number} */ x, /** @type {number} */ count) => Math.max(0, Math.min(count - 1, x));
    const cell = { i: clamp(from.i + step[0] * far, rows.length), j: clamp(Math.max(0, from.j) + step[1] * far, cols.length) };
    const { part } = plot, inside = cell.i >= part.top && cell.i + 1 <= part.bottom && cell.j >= part.left && cell.j + 1 <= part.right;
    if (!inside) moveTo(app, part.top + step[0] * far, part.left + step[1] * far);
    hover(app, cell, plot.left + (cell.j + 0.5 - part.left) * plot.cell, plot.top + (cell.i + 0.5 - part.top) * plot.cell);
  } else if (step) {
    scroll(app, (step[0] || step[1]) * (event.shiftKey ? 10 : 1));
  } else if ((event.key === "Enter" || event.key === " ") && app.hover) {
    choose(app, app.hover);
  } else if (event.key === "+" || event.key === "=" || event.key === "-") {
    zoom(app, event.key === "-" ? 1.5 : 0.67);
  } else if (event.key === "0") {
    app.change({ at: null });
  } else {
    return;
  }
  event.preventDefault();
}

/** Keys that do the same everywhere. @param {App} app @param {KeyboardEvent} event */
function pageKeys(app, event) {
  const node = /** @type {HTMLElement} */ (event.target);
  if (event.key === "Escape") {
    hideTerm();
    if (!$("tour").hidden) tour(99);
    else app.change({ pin: null, cell: null });
    return;
  }
  if (node.matches("select, input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const { state, site } = app, layer = site.layers.indexOf(state.layer);
  if (event.key === "," || event.key === "[") app.change({ head: state.head - 1 });
  else if (event.key === "." || event.key === "]") app.change({ head: state.head + 1 });
  else if (event.key === "<" || event.key === "{") app.change({ layer: site.layers[Math.max(0, layer - 1)] });
  else if (event.key === ">" || event.key === "}") app.change({ layer: site.layers[Math.min(site.layers.length - 1, layer + 1)] });
  else if (event.key === "?") tour();
  else if (event.key === "/") $("search").focus();
  else return;
  event.preventDefault();
}

/** @param {App} app */
function minimap(app) {
  const canvas = $("minimap");
  const go = (/** @type {PointerEvent} */ event) => {
    if (!app.rows || !app.cols) return;
    const [x, y] = under(event, canvas), { part } = app.plot;
    moveTo(app, (y / canvas.clientHeight) * app.rows.length - (part.bottom - part.top) / 2, (x / canvas.clientWidth) * app.cols.length - (part.right - part.left) / 2);
  };
  canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    canvas.setPointerCapture(event.pointerId);
    go(event);
  });
  canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => event.buttons && go(event));
}

/** A strip of tokens: pointing shows, a click or Enter pins, arrows walk. @param {App} app @param {HTMLElement} box @param {() => boolean} isQueries */
function tokens(app, box, isQueries) {
  const index = (/** @type {Event} */ event) => Number(/** @type {HTMLElement} */ (event.target).dataset.index ?? -1);
  const look = (/** @type {number} */ i) => {
    app.hover = i < 0 ? null : { i, j: -1 };
    app.redraw();
  };
  box.addEventListener("pointerover", (event) => isQueries() && index(event) >= 0 && look(index(event)));
  box.addEventListener("pointerleave", () => look(-1));
  box.addEventListener("click", (event) => isQueries() && index(event) >= 0 && app.pin(index(event)));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -10, ArrowDown: 10 }[event.key], node = /** @type {HTMLElement} */ (event.target);
    const next = step && box.children[Math.max(0, Math.min(box.children.length - 1, [...box.children].indexOf(node) + step))];
    if (next instanceof HTMLElement) {
      node.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      if (isQueries()) look(Number(next.dataset.index));
    } else if ((event.key === "Enter" || event.key === " ") && isQueries()) app.pin(index(event));
    else return;
    event.preventDefault();
  });
}
