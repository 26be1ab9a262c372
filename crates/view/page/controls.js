// The controls: what there is to choose, in the language of the page.

import { $ } from "./dom.js";
import { explain } from "./explain.js";
import { say } from "./messages.js";

/** @typedef {import("./app.js").App} App */

/**
 * A row of choices of which one is taken.
 * @param {string} id
 * @param {[string, string][]} names Values and what they are called.
 * @param {string} chosen
 * @param {(value: string) => void} change
 */
function segments(id, names, chosen, change) {
  const box = $(id), row = document.createElement("div"), held = box.contains(document.activeElement);
  box.querySelector(".row")?.remove();
  box.hidden = names.length < 2;
  row.className = "row";
  for (const [value, text] of names) {
    const label = document.createElement("label"), input = document.createElement("input"), span = document.createElement("span");
    Object.assign(input, { type: "radio", name: id, value, checked: value === chosen });
    input.addEventListener("change", () => change(value));
    span.textContent = text;
    label.append(input, span);
    explain(span, value);
    row.append(label);
  }
  box.append(row);
  if (held) /** @type {HTMLElement | null} */ (row.querySelector("input:checked"))?.focus();
}

/**
 * @param {string} id
 * @param {[string | number, string][]} options
 * @param {string | number} chosen
 */
function fillSelect(id, options, chosen) {
  $(id).replaceChildren(...options.map(([value, text]) => new Option(text, String(value), false, String(value) === String(chosen))));
  $(id).disabled = options.length < 2;
}

/** Everything that words, sites and the state decide. @param {App} app */
export function controls(app) {
  const { state, site, meta, run } = app;
  document.querySelectorAll("[data-word]").forEach((node) => (node.textContent = say(/** @type {HTMLElement} */ (node).dataset.word ?? "")));
  document.querySelectorAll("[data-term-of]").forEach((node) => explain(/** @type {HTMLElement} */ (node), /** @type {HTMLElement} */ (node).dataset.termOf ?? ""));
  for (const id of ["site", "view", "measure", "scale", "unit", "pool"]) explain($(id).querySelector("legend"), id);
  const title = meta.title || run.text || say("attention");
  $("title").textContent = title.length > 90 ? `${title.slice(0, 88)}…` : title;
  document.title = title;
  $("note").textContent = caption(app);
  $("language-code").textContent = state.lang === "ko" ? "EN" : "KO";
  $("language").title = say("other_language_name");
  $("language").setAttribute("aria-label", say("other_language_name"));
  $("theme").textContent = say(state.theme);
  $("theme").title = say("theme");
  $("search").placeholder = say("search");
  for (const [id, word] of [["zoom-in", "zoom_in"], ["zoom-out", "zoom_out"], ["zoom-all", "zoom_all"]]) {
    $(id).title = say(word);
    $(id).setAttribute("aria-label", say(word));
  }
  $("precision").hidden = meta.digits > 2;
  $("precision").textContent = say("half_precision");
  $("canvas").setAttribute("aria-label", say("canvas_label", { rows: app.rows?.length ?? 0, cols: app.cols?.length ?? 0 }));
  choices(app);
  const heads = state.measure === "rollout" ? 1 : site.heads;
  fillSelect("layer", site.layers.map((layer) => [layer, String(layer)]), state.layer);
  fillSelect("head", heads > 1 ? [[-1, say("mean")], ...[...Array(heads).keys()].map((h) => /** @type {[number, string]} */ ([h, String(h)]))] : [[0, state.measure === "rollout" ? say("mean") : "0"]], heads > 1 ? state.head : 0);
  for (const id of ["layer", "head"]) {
    $(`${id}-less`).disabled = $(`${id}-more`).disabled = $(id).disabled;
    $(`${id}-less`).setAttribute("aria-label", `${say(id)}: ${say("less")}`);
    $(`${id}-more`).setAttribute("aria-label", `${say(id)}: ${say("more")}`);
    $(id).setAttribute("aria-label", say(id));
  }
  $("hide").checked = state.hide;
  $("hide-label").hidden = ![site.queries, site.keys].some((axis) => run.axes[axis].special.length);
  $("run-label").hidden = app.runs.length < 2;
  fillSelect("run", app.runs.map((other) => [other.id, `${other.model} · ${short(other.text)}`]), run.id);
  comparison(app);
  headChoice(app);
}

/** @param {string} text */
const short = (text) => (text.length > 28 ? `${text.slice(0, 27)}…` : text);

/** The rows of choices. @param {App} app */
function choices(app) {
  const { state, site, run, meta } = app;
  segments("site", run.sites.map(({ kind }) => [kind, say(`site_${kind}`)]), site.kind, (kind) => app.change({ site: /** @type {any} */ (kind) }));
  segments("measure", site.measures.map((m) => [m, say(m)]), state.measure, (measure) => app.change({ measure: /** @type {any} */ (measure) }));
  segments("scale", [["linear", say("linear")], ["root", say("root")], ["log", say("log")]], state.scale, (scale) => app.change({ scale: /** @type {any} */ (scale) }));
  segments("pool", (app.tiles?.top ?? 0) > 0 ? [["max", say("max")], ["mean", say("pool_mean")]] : [], state.pool, (pool) => app.change({ pool: /** @type {any} */ (pool) }));
  const merges = [site.queries, site.keys].some((axis) => new Set(run.axes[axis].words).size < run.axes[axis].words.length);
  segments("unit", merges ? [["words", say("unit_words")], ["tokens", say("unit_tokens")]] : [], state.unit, (unit) => app.change({ unit: /** @type {any} */ (unit) }));
  const views = ["map", "lines", ...(site.heads > 1 ? ["heads"] : []), ...(meta.can.includes("neurons") ? ["neurons"] : []), "table"];
  segments("view", views.map((view) => [view, say(view)]), state.view, (view) => app.change({ view: /** @type {any} */ (view) }));
}

/** Which attention is shown. @param {App} app */
export function caption({ state, site, run, meta }) {
  const parts = [run.model || meta.note];
  if (run.sites.length > 1 || site.kind !== "attention") parts.push(say(`site_${site.kind}`));
  if (state.measure === "rollout") parts.push(`${say("layer")} ${site.layers[0]}–${state.layer}`);
  else {
    parts.push(`${say("layer")} ${state.layer}`);
    if (site.heads > 1) parts.push(`${say("head")} ${state.head < 0 ? say("mean") : state.head}`);
  }
  if (state.measure !== "weights") parts.push(say(state.measure));
  return parts.filter(Boolean).join(" · ");
}

/** @param {App} app */
function comparison(app) {
  const { state, site, run } = app, /** @type {[string, string][]} */ options = [["", "—"]];
  for (const other of app.runs) {
    const same = other === run, sites = other.sites.filter((s) => s.kind === site.kind);
    for (const s of sites) {
      const layers = same ? s.layers : [state.layer].filter((layer) => s.layers.includes(layer));
      for (const layer of layers) {
        for (let head = 0; head < s.heads && options.length < 400; head++) {
          if (same && layer === state.layer && head === state.head) continue;
          options.push([`${other.id}~${s.kind}~${layer}~${head}`, `${same ? "" : `${other.model} · ${short(other.text)} · `}${say("layer")} ${layer} · ${say("head")} ${head}`]);
        }
      }
    }
  }
  const chosen = state.with ? `${state.with.run}~${state.with.site}~${state.with.layer}~${state.with.head}` : "";
  fillSelect("with", options, chosen);
  $("compare-section").hidden = options.length < 2;
  $("with-close").hidden = !state.with;
  $("pane-b").hidden = !state.with || state.view !== "map";
}

/** Heads to overlay, a colour each. @param {App} app */
function headChoice(app) {
  const box = $("head-choice"), { site, look } = app, chosen = app.chosenHeads;
  box.hidden = app.state.view !== "heads";
  box.querySelector(".row")?.remove();
  if (box.hidden || !look) return;
  const row = document.createElement("div");
  row.className = "row";
  for (let head = 0; head < site.heads; head++) {
    const label = document.createElement("label"), input = document.createElement("input"), square = document.createElement("i");
    Object.assign(input, { type: "checkbox", checked: chosen.includes(head), value: String(head) });
    square.style.background = look.heads[head % look.heads.length];
    input.addEventListener("change", () => app.change({ heads: input.checked ? [...chosen, head].sort((a, b) => a - b) : chosen.filter((other) => other !== head) }));
    label.append(input, square, String(head));
    row.append(label);
  }
  box.append(row);
}
