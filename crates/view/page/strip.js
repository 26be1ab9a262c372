// The row that is looked at, and the text it belongs to.

import { $ } from "./dom.js";
import { drawPatches } from "./patches.js";
import { STRIP, drawStrongest, fillText, shadeText, titleReading } from "./reading.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./axis.js").Axis} Axis */

/** @type {number | undefined} */
let timer;

/** The row that is pinned or pointed at, as a list and in the text. @param {App} app */
export async function read(app) {
  const { rows, cols, look } = app, i = app.pinned >= 0 ? app.pinned : (app.hover?.i ?? -1);
  if (!rows || !cols || !look) return;
  fillStrip(app, i);
  const key = `${app.tilesKey} ${i}`;
  if (key !== app.keys.row) {
    app.keys.row = key;
    app.reading?.abort();
    app.reading = new AbortController();
    try {
      const row = i < 0 ? null : await app.entries(app.at, [i, i + 1], [0, cols.length], app.reading.signal);
      if (app.keys.row !== key) return;
      app.row = row;
      app.rowTurn++;
    } catch {
      return;
    }
  }
  drawPatches(app);
  const shown = `${key} ${app.rowTurn} ${app.pinned} ${app.state.lang} ${look.paper} ${app.keys.strip}`;
  if (shown === app.shown) return;
  app.shown = shown;
  titleReading($("reading-title"), i < 0 ? null : rows.entries[i].label);
  drawStrongest($("strongest"), cols, app.row, app.meta.digits);
  shadeText($("text"), cols, app.row, look, app.square ? app.pinned : -1);
  shadeText($("queries"), rows, null, look, app.pinned);
  if (app.pinned >= 0) reveal(app.square ? $("text") : $("queries"));
}

/** The text, or the part of a long one around what is looked at. @param {App} app @param {number} row */
function fillStrip(app, row) {
  const rows = /** @type {Axis} */ (app.rows), cols = /** @type {Axis} */ (app.cols);
  const middle = row >= 0 ? row : app.state.view === "map" && app.plot?.part ? (app.plot.part.top + app.plot.part.bottom) / 2 : 0;
  const range = (/** @type {Axis} */ axis) => {
    const from = axis.length <= STRIP ? 0 : Math.max(0, Math.min(axis.length - STRIP, Math.floor((middle - STRIP / 2) / 100) * 100));
    return /** @type {[number, number]} */ ([from, Math.min(axis.length, from + STRIP)]);
  };
  const whose = JSON.stringify([app.run.id, app.site.kind, app.state.unit, app.state.hide]), key = `${whose} ${range(cols)} ${range(rows)}`;
  if (key === app.keys.strip) return;
  const fill = () => {
    app.keys.strip = key;
    fillText($("text"), cols, ...range(cols));
    $("queries").hidden = app.square;
    if (!app.square) fillText($("queries"), rows, ...range(rows));
  };
  clearTimeout(timer);
  if (!app.keys.strip.startsWith(whose)) return fill();
  // While the map moves, the text follows when it rests.
  timer = setTimeout(() => {
    fill();
    app.redraw();
  }, 150);
}

/** Scrolls a strip, and nothing else, to what is pinned. @param {HTMLElement} box */
function reveal(box) {
  const span = /** @type {HTMLElement | null} */ (box.querySelector(".pinned"));
  if (!span) return;
  const top = span.offsetTop - box.offsetTop;
  if (top < box.scrollTop || top + span.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top - 4;
}
