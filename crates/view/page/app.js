// The page at work: its state, what follows from it, and drawing it.

import { Axis } from "./axis.js";
import { drawCell } from "./cell.js";
import { makeLook } from "./look.js";
import { drawMap, inSight, plot } from "./map.js";
import { say, speak } from "./messages.js";
import { drawMinimap } from "./minimap.js";
import { drawOverview } from "./overview.js";
import { CanvasPainter } from "./painter.js";
import { $ } from "./dom.js";
import { read } from "./strip.js";
import { defaults, fragment, fromAddress, parse } from "./state.js";
import { TileSet, merged } from "./tiles.js";
import { drawWindow } from "./windows.js";

/** @typedef {import("./source.js").At} At */
/** @typedef {import("./state.js").State} State */

export class App {
  /**
   * @param {import("./source.js").Source} source
   * @param {import("./source.js").Meta} meta
   */
  constructor(source, meta) {
    this.source = source;
    this.meta = meta;
    this.runs = meta.runs;
    /** @type {State} */
    this.state = { ...defaults(), lang: meta.language, ...parse(meta.view) };
    /** @type {{i: number, j: number} | null} */
    this.hover = null;
    /** Called after every change, with the controls' own work. @type {(() => void)[]} */
    this.listeners = [];
    /** @type {any} */ this.plot = null;
    /** @type {any} */ this.window = null;
    /** @type {any} */ this.neurons = null;
    /** @type {any} */ this.small = null;
    /** @type {any} */ this.overviewAt = null;
    /** @type {Float32Array | null} */ this.row = null;
    this.rowTurn = 0;
    /** @type {AbortController | null} */ this.reading = null;
    /** @type {TileSet | null} */ this.other = null;
    this.asked = false;
    this.turn = 0;
    this.tilesKey = this.otherKey = this.shown = "";
    this.keys = { row: "", strip: "", window: "", neurons: "", cell: "none yet", small: "" };
    this.openRun(parse(fromAddress()));
  }

  get run() {
    return this.runs.find((run) => run.id === this.state.run) ?? this.runs[0];
  }

  get site() {
    return this.run.sites.find((site) => site.kind === this.state.site) ?? this.run.sites[0];
  }

  /** @returns {At} */
  get at() {
    const { layer, head } = this.state;
    return { run: this.run.id, site: this.site.kind, layer, head };
  }

  /** Whether rows and columns are the same tokens. */
  get square() {
    return this.site.queries === this.site.keys;
  }

  get theme() {
    if (this.state.theme !== "auto") return this.state.theme;
    return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }

  /** The state that a run opens with, and over it what is `given`. @param {Partial<State>} given */
  openRun(given) {
    const opening = { ...parse(this.meta.view), ...given };
    const run = this.runs.find((other) => other.id === (opening.run ?? this.state.run)) ?? this.runs[0];
    const wanted = opening.site ?? "", site = run.sites.find((other) => other.kind === wanted) ?? run.sites[run.sites.length - 1];
    const long = Math.max(...run.axes.map((axis) => axis.labels.length)) > 64;
    Object.assign(this.state, { layer: site.salient[0], head: site.salient[1], scale: long ? "root" : "linear", at: null, pin: null, cell: null }, opening, { run: run.id, site: site.kind });
  }

  /**
   * Changes the state, keeping it within what there is, and shows it.
   * @param {Partial<State>} to
   */
  change(to) {
    const { state } = this;
    const moved = (to.run !== undefined && to.run !== state.run) || (to.site !== undefined && to.site !== state.site);
    Object.assign(state, to);
    const { site } = this;
    if (moved) Object.assign(state, { at: null, pin: null, cell: null, with: null }, to, { layer: to.layer ?? site.salient[0], head: to.head ?? site.salient[1] });
    // A part is counted in entries: in others it would be another part.
    if ((to.unit !== undefined || to.hide !== undefined) && to.at === undefined) state.at = null;
    if (!site.layers.includes(state.layer)) state.layer = site.layers.reduce((best, layer) => (Math.abs(layer - state.layer) < Math.abs(best - state.layer) ? layer : best));
    state.head = Math.max(-1, Math.min(state.head, site.heads - 1));
    if (!site.measures.includes(state.measure)) state.measure = "weights";
    this.refresh();
  }

  /** Makes everything anew that follows from the state. */
  refresh() {
    const { state, run, site } = this;
    speak(state.lang);
    document.documentElement.lang = state.lang;
    document.documentElement.dataset.theme = this.theme;
    this.look = makeLook(this.theme);
    this.rows = new Axis(run.axes[site.queries], state.unit, state.hide);
    this.cols = this.square ? this.rows : new Axis(run.axes[site.keys], state.unit, state.hide);
    this.hover = null;
    const key = JSON.stringify([this.at, state.measure, state.pool, state.unit, state.hide, state.off]);
    if (key !== this.tilesKey) {
      this.tiles?.close();
      this.tiles = new TileSet(this.source, { at: this.at, measure: state.measure, pool: state.pool }, this.rows, this.cols, () => this.redraw());
      this.tilesKey = key;
      this.keys.row = this.keys.window = this.keys.neurons = "";
      this.keys.cell = "none yet";
    }
    this.refreshOther();
    this.refreshSmall();
    this.refreshCell();
    for (const listener of this.listeners) listener();
    this.redraw();
  }

  /** The second matrix of a comparison. */
  refreshOther() {
    const { state } = this, at = state.with, run = at && this.runs.find((other) => other.id === at.run), site = run && run.sites.find((other) => other.kind === at.site);
    const key = site ? JSON.stringify([at, state.measure, state.pool, state.unit, state.hide]) : "";
    if (key === this.otherKey) return;
    this.other?.close();
    this.other = null;
    this.otherKey = key;
    if (!site || !run || !at) return;
    const rows = new Axis(run.axes[site.queries], state.unit, state.hide), cols = site.queries === site.keys ? rows : new Axis(run.axes[site.keys], state.unit, state.hide);
    const measure = site.measures.includes(state.measure) ? state.measure : "weights";
    this.other = new TileSet(this.source, { at, measure, pool: state.pool }, rows, cols, () => this.redraw());
  }

  /** The small pictures of all heads. */
  async refreshSmall() {
    const { state, run, site } = this, key = JSON.stringify([run.id, site.kind, state.measure, state.off]);
    if (key !== this.keys.small && this.meta.can.includes("overview")) {
      this.keys.small = key;
      try {
        const { head, buffers } = await this.source.ask({ kind: "overview", run: run.id, site: site.kind, measure: state.measure });
        if (this.keys.small !== key) return;
        this.small = { ...head, codes: new Uint8Array(buffers[0]) };
      } catch (error) {
        this.fail(error);
      }
    }
    this.drawSmall();
  }

  drawSmall() {
    const { state, site, small } = this, heads = state.measure === "rollout" ? 1 : site.heads;
    const few = site.layers.length * heads < 2 || !small || small.codes.length !== site.layers.length * heads * small.rows * small.cols;
    $("overview-section").hidden = few;
    if (few || !this.look) return;
    const isOff = (/** @type {number} */ layer, /** @type {number} */ head) => state.off.some(([kind, l, h]) => kind === site.kind && l === layer && h === head);
    this.overviewAt = drawOverview($("overview"), { small, layers: site.layers, heads, layer: state.layer, head: state.head, isOff }, this.look);
    $("overview-sampled").hidden = !small.sampled;
    const index = site.layers.indexOf(state.layer) * heads + Math.max(0, heads === 1 ? 0 : state.head);
    // Colours do not change while one looks closer: the head's largest value is known from its small picture.
    if (this.tiles && state.pool === "max" && state.head >= 0 && !small.sampled && this.rows?.plain && this.cols?.plain) {
      this.tiles.peak = Math.max(this.tiles.peak, small.max[index] ?? 0);
      this.redraw();
    }
  }

  async refreshCell() {
    const { state } = this, can = this.meta.can.includes("cell") && state.head >= 0;
    $("cell-section").hidden = !can;
    const key = can && state.cell ? JSON.stringify([this.at, state.cell, state.lang, state.off]) : "";
    if (key === this.keys.cell) return;
    this.keys.cell = key;
    if (!key || !state.cell) {
      $("cell").textContent = say("cell_none");
      return;
    }
    const [query, key_] = state.cell, axes = this.run.axes, label = (/** @type {number} */ axis, /** @type {number} */ token) => (axes[axis].labels[token] ?? "").replace(/▁/g, " ").trim();
    try {
      const reply = await this.source.ask({ kind: "cell", at: this.at, query, key: key_ });
      if (this.keys.cell === key) drawCell($("cell"), reply, { query: label(this.site.queries, query), key: label(this.site.keys, key_) }, this.meta.digits);
    } catch (error) {
      this.fail(error);
    }
  }

  redraw() {
    if (!this.asked) requestAnimationFrame(() => this.draw());
    this.asked = true;
  }

  /** The size of the stage. */
  size() {
    const canvas = $("canvas"), width = canvas.clientWidth, top = canvas.getBoundingClientRect().top + window.scrollY;
    return { width, height: Math.max(340, Math.min(window.innerHeight - top - 34, 1200)) };
  }

  get pinned() {
    return this.state.pin === null || !this.rows ? -1 : this.rows.entryOf(this.state.pin);
  }

  /** What the map draws. */
  get picture() {
    const { rows, cols, tiles, look, state } = this;
    const chosen = state.cell && rows && cols ? { i: rows.entryOf(state.cell[0]), j: cols.entryOf(state.cell[1]) } : null;
    return /** @type {import("./map.js").Picture} */ ({ rows, cols, tiles, look, scale: state.scale, digits: this.meta.digits, hover: this.hover, pinned: this.pinned, chosen });
  }

  /** What lines and tables draw. */
  get linesPicture() {
    const { rows, cols, look, state, window } = this;
    return /** @type {any} */ ({ rows, cols, look, window, scale: state.scale, hover: this.hover, pinned: this.pinned, many: state.view === "heads" });
  }

  draw() {
    this.asked = false;
    const { state, tiles } = this;
    if (!tiles || !this.look) return;
    const isTable = state.view === "table";
    $("canvas").hidden = isTable;
    $("table").hidden = !isTable;
    $("zoom").hidden = state.view !== "map";
    if (state.view === "map") this.drawMaps(tiles);
    else drawWindow(this);
    read(this);
    // A frame without an address of its own has nowhere to write it.
    if (location.protocol !== "about:") history.replaceState(null, "", `#${fragment(state)}`);
    document.body.dataset.turn = String(++this.turn);
  }

  /** @param {TileSet} tiles */
  drawMaps(tiles) {
    const size = this.size(), { picture } = this;
    this.plot = plot(picture, size, this.state.at);
    const keys = inSight(picture, this.plot).map(({ key }) => key);
    // The top of the pyramid stands behind everything.
    tiles.want(keys, `${tiles.top}/0/0`);
    // Where nothing can be moved, a finger scrolls the page.
    $("canvas").style.touchAction = this.state.at ? "none" : "pan-y";
    this.paint($("canvas"), size, (painter) => drawMap(painter, picture, this.plot));
    drawMinimap($("minimap"), picture, this.plot);
    let settled = tiles.settled;
    if (this.other) {
      const second = { ...picture, tiles: this.other, rows: this.other.rows, cols: this.other.cols, pinned: -1, chosen: null, hover: null };
      const other = plot(second, { ...size, width: $("canvas-b").clientWidth }, this.plot.cell > 0 && this.state.at ? this.plot.part : null);
      this.other.want(inSight(second, other).map(({ key }) => key));
      this.paint($("canvas-b"), size, (painter) => drawMap(painter, second, other));
      $("name-a").textContent = this.name(this.at);
      $("name-b").textContent = this.name(this.other.what.at);
      settled = settled && this.other.settled;
    }
    if (tiles.error) this.fail(tiles.error);
    document.body.dataset.ready = settled ? "yes" : "no";
  }

  /** Looks at another part of the map. @param {import("./state.js").Rect} part */
  moveTo(part) {
    this.state.at = part;
    // At once: the next event, which may come before the next frame, goes on from here.
    this.plot = plot(this.picture, this.size(), part);
    this.redraw();
  }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {{width: number, height: number}} size
   * @param {(painter: any) => void} work
   */
  paint(canvas, size, work) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    canvas.style.height = `${size.height}px`;
    const [w, h] = [Math.round(width * ratio), Math.round(size.height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, size.height);
    work(new CanvasPainter(context));
  }

  /** The heads that a view of several shows. */
  get chosenHeads() {
    const { state, site } = this;
    if (state.view !== "heads") return [state.head];
    const chosen = state.heads.filter((head) => head < site.heads);
    return chosen.length ? chosen : [...Array(Math.min(site.heads, 4)).keys()];
  }

  /**
   * The weights between entries.
   * @param {At} at
   * @param {[number, number]} down
   * @param {[number, number]} across
   * @param {AbortSignal} [signal]
   */
  async entries(at, down, across, signal) {
    const rows = /** @type {Axis} */ (this.rows), cols = /** @type {Axis} */ (this.cols), { measure } = this.state;
    const [tokens, keys] = [rows.tokens(...down), cols.tokens(...across)];
    const { buffers } = await this.source.ask({ kind: "tile", at, measure, rows: tokens, cols: keys }, { signal });
    const matrix = { values: new Float32Array(buffers[0]), rows: tokens[1] - tokens[0], cols: keys[1] - keys[0] };
    return merged(matrix, rows, down, cols, across);
  }

  /** Pins the query of an entry, or lets go of it. @param {number} i */
  pin(i) {
    const token = i < 0 ? null : (this.rows?.entries[i].start ?? null);
    this.state.pin = token !== null && this.pinned === i ? null : token;
    this.redraw();
  }

  /** @param {unknown} error */
  fail(error) {
    if (error instanceof DOMException && error.name === "AbortError") return;
    const message = error instanceof Error ? error.message : String(error);
    $("message").textContent = say("failed", { message });
    $("message").hidden = false;
  }

  /** What a matrix is called beside another. @param {At} at */
  name(at) {
    const run = this.runs.find((other) => other.id === at.run), text = `${say("layer")} ${at.layer} · ${say("head")} ${at.head < 0 ? say("mean") : at.head}`;
    return this.runs.length > 1 && run ? `${run.model} · ${run.text.slice(0, 40)} · ${text}` : text;
  }
}
