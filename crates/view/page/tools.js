// What the buttons around the picture do: steps, saving, links, search, comparison, the head report.

import { $ } from "./dom.js";
import { caption } from "./controls.js";
import { explain, tour } from "./explain.js";
import { drawLines, linesPlot } from "./lines.js";
import { drawMap } from "./map.js";
import { number } from "./look.js";
import { say } from "./messages.js";
import { saveCsv, saveJson, savePng, saveSvg } from "./save.js";
import { fragment } from "./state.js";
import { paintNeurons } from "./windows.js";

/** @typedef {import("./app.js").App} App */

/** Cells of a file of numbers, at most. */
const MOST = 1 << 20;

/** @param {App} app */
export function tools(app) {
  $("controls").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  for (const id of /** @type {("layer" | "head")[]} */ (["layer", "head"])) {
    const step = (/** @type {number} */ by) => {
      const { layers } = app.site, at = layers.indexOf(app.state.layer) + by;
      app.change(id === "head" ? { head: app.state.head + by } : { layer: layers[Math.max(0, Math.min(layers.length - 1, at))] });
    };
    $(id).addEventListener("change", () => app.change({ [id]: Number($(id).value) }));
    $(`${id}-less`).addEventListener("click", () => step(-1));
    $(`${id}-more`).addEventListener("click", () => step(1));
  }
  $("hide").addEventListener("change", () => app.change({ hide: $("hide").checked }));
  $("run").addEventListener("change", () => {
    app.openRun({ run: $("run").value });
    app.change({});
  });
  $("language").addEventListener("click", () => app.change({ lang: app.state.lang === "ko" ? "en" : "ko" }));
  $("theme").addEventListener("click", () => app.change({ theme: /** @type {const} */ ({ auto: "light", light: "dark", dark: "auto" })[app.state.theme] }));
  $("help").addEventListener("click", () => tour());
  $("save-svg").addEventListener("click", () => saveSvg(figure(app)));
  $("save-png").addEventListener("click", () => savePng(figure(app)));
  $("save-json").addEventListener("click", async () => saveJson(fileName(app), await numbers(app), { ...app.at, measure: app.state.measure }));
  $("save-csv").addEventListener("click", async () => saveCsv(fileName(app), await numbers(app)));
  $("copy-link").addEventListener("click", () => copyLink(app));
  $("with").addEventListener("change", () => {
    const [run, site, layer, head] = $("with").value.split("~");
    app.change({ with: site ? { run, site, layer: Number(layer), head: Number(head) } : null });
  });
  $("with-close").addEventListener("click", () => app.change({ with: null }));
  overview(app);
  search(app);
  report(app);
}

/** @param {App} app */
const fileName = ({ site, state }) => `attention-${site.kind}-layer${state.layer}-${state.measure === "rollout" ? "rollout" : state.head < 0 ? "mean" : `head${state.head}`}`;

/** @param {App} app @returns {import("./save.js").Figure} */
function figure(app) {
  const { state, plot } = app, still = { ...app.picture, hover: null }, size = app.size();
  const cut = state.view === "map" ? { width: plot.left + plot.width + 66, height: plot.top + plot.height + 4 } : size;
  const paint = (/** @type {any} */ painter) => {
    if (state.view === "map") drawMap(painter, still, plot);
    else if (state.view === "neurons") paintNeurons(app, painter, size);
    else drawLines(painter, { ...app.linesPicture, hover: null }, linesPlot(app.linesPicture, size));
  };
  return { name: fileName(app), title: app.meta.title || app.run.text, note: caption(app), look: /** @type {any} */ (app.look), size: cut, paint };
}

/** The numbers in sight, as far as a file holds them. @param {App} app */
async function numbers(app) {
  const rows = /** @type {import("./axis.js").Axis} */ (app.rows), cols = /** @type {import("./axis.js").Axis} */ (app.cols), part = app.state.at;
  /** @type {[number, number]} */ let down = part ? [Math.floor(part.top), Math.min(rows.length, Math.ceil(part.bottom))] : [0, rows.length];
  /** @type {[number, number]} */ const across = part ? [Math.floor(part.left), Math.min(cols.length, Math.ceil(part.right))] : [0, cols.length];
  const tokens = cols.tokens(...across), most = Math.max(1, Math.floor(MOST / (tokens[1] - tokens[0])));
  down = [down[0], Math.min(down[1], down[0] + most)];
  const label = (/** @type {import("./axis.js").Entry} */ entry) => entry.label;
  return { queries: rows.entries.slice(...down).map(label), keys: cols.entries.slice(...across).map(label), values: await app.entries(app.at, down, across) };
}

/** @param {App} app */
async function copyLink(app) {
  const link = `${location.href.split("#")[0]}#${fragment(app.state)}`, button = $("copy-link");
  try {
    await navigator.clipboard.writeText(link);
    button.textContent = say("copied");
  } catch {
    // The address has it, too.
    location.hash = fragment(app.state);
  }
}

/** @param {App} app */
function overview(app) {
  const canvas = $("overview");
  const open = (/** @type {number} */ l, /** @type {number} */ h) => {
    const { site, state } = app, heads = state.measure === "rollout" ? 1 : site.heads;
    if (l < 0 || l >= site.layers.length || h < 0 || h >= heads) return;
    app.change(heads === 1 ? { layer: site.layers[l] } : { layer: site.layers[l], head: h });
  };
  canvas.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    const box = canvas.getBoundingClientRect(), { margin, step } = app.overviewAt;
    open(Math.floor((event.clientY - box.top - margin) / step), Math.floor((event.clientX - box.left - margin) / step));
  });
  canvas.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    open(app.site.layers.indexOf(app.state.layer) + move[0], Math.max(0, app.state.head) + move[1]);
  });
}

/** Goes from one token that holds what was typed to the next. @param {App} app */
function search(app) {
  let at = -1;
  const go = (/** @type {number} */ by) => {
    const rows = app.rows, wanted = $("search").value.trim().toLowerCase();
    if (!rows || !wanted) {
      $("found").textContent = "";
      return;
    }
    const found = rows.entries.map((_, i) => i).filter((i) => rows.entries[i].text.toLowerCase().includes(wanted));
    if (!found.length) {
      $("found").textContent = say("search_none");
      return;
    }
    at = (at + by + found.length) % found.length;
    $("found").textContent = say("search_found", { at: at + 1, count: found.length });
    const i = found[at], tall = app.plot?.part ? app.plot.part.bottom - app.plot.part.top : 20, span = Math.min(40, tall);
    app.state.pin = rows.entries[i].start;
    if (app.state.view === "map" && rows.length > 40) {
      const top = i - span / 2, left = app.square ? i - span * 0.75 : (app.state.at?.left ?? 0);
      app.state.at = { top, left, bottom: top + span, right: left + span };
    }
    app.redraw();
  };
  $("search").addEventListener("input", () => {
    at = -1;
    go(1);
  });
  $("search").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    go(event.shiftKey ? -1 : 1);
  });
}

/** @param {App} app */
function report(app) {
  const columns = ["entropy", "confidence", "previous", "first", "same"];
  $("report-section").hidden = !app.meta.can.includes("heads");
  $("report-make").addEventListener("click", async () => {
    $("report-make").disabled = true;
    $("report").textContent = say("working");
    try {
      const { head } = await app.source.ask({ kind: "heads", run: app.run.id, site: app.site.kind });
      const table = document.createElement("table"), top = table.createTHead().insertRow(), body = table.createTBody();
      for (const name of ["layer", "head", ...columns]) {
        const cell = Object.assign(document.createElement("th"), { textContent: say(name) });
        explain(cell, name === "first" ? "sink" : name);
        top.append(cell);
      }
      for (const row of head.rows) {
        const line = body.insertRow();
        line.addEventListener("click", () => app.change({ layer: row.layer, head: row.head }));
        line.append(Object.assign(document.createElement("th"), { textContent: row.layer }), Object.assign(document.createElement("td"), { textContent: row.head }));
        for (const name of columns) line.insertCell().textContent = number(row[name] ?? 0, 2);
      }
      $("report").replaceChildren(table);
    } catch (error) {
      app.fail(error);
      $("report").textContent = "";
    }
    $("report-make").disabled = false;
  });
}
