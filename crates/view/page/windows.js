// Views of a part of the matrix that fits on the stage: lines, heads overlaid, neurons, the table.

import { $ } from "./dom.js";
import { drawLines, linesPlot } from "./lines.js";
import { say } from "./messages.js";
import { drawNeurons } from "./neurons.js";
import { fillTable } from "./table.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./axis.js").Axis} Axis */

/** Rows and columns, at most. */
const WINDOW = { lines: 60, heads: 60, table: 40, neurons: 40 };

/** The entries that lines, neurons and tables show: as many as fit, from where the map is. @param {App} app */
export function windowRange(app) {
  const { rows, cols, state } = app, most = WINDOW[/** @type {keyof typeof WINDOW} */ (state.view)] ?? 60;
  const range = (/** @type {number} */ from, /** @type {number} */ count) => {
    const start = Math.max(0, Math.min(Math.floor(from), count - most));
    return /** @type {[number, number]} */ ([start, Math.min(count, start + most)]);
  };
  return { rows: range(state.at?.top ?? 0, rows?.length ?? 0), cols: range(state.at?.left ?? 0, cols?.length ?? 0) };
}

/** @param {App} app */
export async function drawWindow(app) {
  const { state } = app, range = windowRange(app), heads = app.chosenHeads;
  const key = JSON.stringify([app.tilesKey, range, heads, state.view === "neurons" ? [state.view, state.pin] : ""]);
  if (key !== app.keys.window) {
    app.keys.window = key;
    document.body.dataset.ready = "no";
    try {
      const window = { ...range, shows: [state.layer, state.head, range.rows[0], range.cols[0]].join("."), heads: await Promise.all(heads.map(async (head) => ({ head, values: await app.entries({ ...app.at, head }, range.rows, range.cols) }))) };
      const neurons = state.view === "neurons" ? await fetchNeurons(app, range.cols) : null;
      if (app.keys.window !== key) return;
      [app.window, app.neurons] = [window, neurons];
    } catch (error) {
      app.fail(error);
    }
  }
  if (!app.window || app.window.heads[0].values.length !== (range.rows[1] - range.rows[0]) * (range.cols[1] - range.cols[0])) return;
  const size = app.size();
  if (state.view === "table") {
    fillTable($("table"), app.linesPicture, app.meta.digits);
    $("table").dataset.shows = app.window.shows;
  } else if (state.view === "neurons") app.paint($("canvas"), size, (painter) => paintNeurons(app, painter, size));
  else {
    app.plot = linesPlot(app.linesPicture, size);
    app.paint($("canvas"), size, (painter) => drawLines(painter, app.linesPicture, app.plot));
  }
  $("minimap").hidden = true;
  document.body.dataset.ready = "yes";
}

/** @param {App} app @param {any} painter @param {{width: number, height: number}} size */
export function paintNeurons(app, painter, size) {
  const look = /** @type {import("./look.js").Look} */ (app.look);
  if (app.neurons) drawNeurons(painter, app.neurons, look, size, app.meta.digits);
  else painter.text(24, 40, say("neurons_pin"), { size: 14, fill: look.muted });
}

/** @param {App} app @param {[number, number]} cols */
async function fetchNeurons(app, cols) {
  const { state, rows } = app, axis = /** @type {Axis} */ (app.cols);
  const query = state.pin ?? rows?.entries[rows.length - 1].start ?? 0;
  if (!app.meta.can.includes("neurons") || state.head < 0) return null;
  const keys = axis.tokens(...cols), most = /** @type {[number, number]} */ ([keys[0], Math.min(keys[1], keys[0] + WINDOW.neurons)]);
  const [vectors, weights] = await Promise.all([
    app.source.ask({ kind: "neurons", at: app.at, query, keys: most }),
    app.source.ask({ kind: "tile", at: app.at, measure: "weights", rows: [query, query + 1], cols: most }),
  ]);
  const labels = app.run.axes[app.site.keys].labels, [q, k] = vectors.buffers.map((buffer) => new Float32Array(buffer));
  return { query: app.run.axes[app.site.queries].labels[query], keys: labels.slice(...most), q, k, weights: new Float32Array(weights.buffers[0]) };
}
