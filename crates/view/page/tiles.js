// The matrix as a pyramid of tiles, as street maps have them. A tile is a picture of 256 × 256 pixels; at level z a pixel
// stands for 2^z × 2^z entries, and at level 0 for one. Tiles are asked for when they come into sight, kept for a while, and
// asked for no longer when they are out of it.

import { MOST_CELLS, MOST_PIXELS } from "./source.js";
import { gathered, largest } from "./matrix.js";
import { SCALES } from "./look.js";

/** @typedef {import("./axis.js").Axis} Axis */
/** @typedef {import("./look.js").Look} Look */

/**
 * @typedef {object} Tile
 * @property {Float32Array} values
 * @property {number} rows
 * @property {number} cols
 * @property {boolean} coarse Whether it is only there until a sharp one comes.
 * @property {HTMLCanvasElement | null} canvas
 * @property {string} painted How the canvas was coloured.
 */

export const SIDE = 256;
/** Tiles to keep: 64 MB. */
const KEEP = 160;
/** Requests at a time. */
const AT_ONCE = 6;

export class TileSet {
  /**
   * @param {import("./source.js").Source} source
   * @param {{at: import("./source.js").At, measure: import("./source.js").Measure, pool: import("./source.js").Pool}} what
   * @param {Axis} rows
   * @param {Axis} cols
   * @param {() => void} changed Called when a tile has come.
   */
  constructor(source, what, rows, cols, changed) {
    this.source = source;
    this.what = what;
    this.rows = rows;
    this.cols = cols;
    this.changed = changed;
    /** The largest value, as far as it is known. */
    this.peak = 0;
    this.top = Math.max(0, Math.ceil(Math.log2(Math.max(rows.length, cols.length) / SIDE)));
    /** @type {Map<string, Tile>} */
    this.tiles = new Map();
    /** @type {Map<string, AbortController>} */
    this.asked = new Map();
    /** @type {string[]} */
    this.wanted = [];
    /** A tile that stands behind all others; a coarse one will do. */
    this.backdrop = "";
    /** @type {unknown} */
    this.error = null;
  }

  /** Whether all that was wanted is there. */
  get settled() {
    return this.wanted.every((key) => this.tiles.has(key) && !this.tiles.get(key)?.coarse) || this.error !== null;
  }

  /** @param {number} z @param {number} y @param {number} x */
  get(z, y, x) {
    const key = `${z}/${y}/${x}`, tile = this.tiles.get(key);
    if (tile) {
      this.tiles.delete(key);
      this.tiles.set(key, tile);
    }
    return tile;
  }

  /**
   * The value of an entry, if its tile is there at level 0.
   * @param {number} i
   * @param {number} j
   */
  value(i, j) {
    const tile = this.tiles.get(`0/${Math.floor(i / SIDE)}/${Math.floor(j / SIDE)}`);
    return tile && !tile.coarse ? tile.values[(i % SIDE) * tile.cols + (j % SIDE)] : undefined;
  }

  /**
   * Asks for these tiles and for no others, in this order.
   * @param {string[]} keys
   * @param {string} [backdrop]
   */
  want(keys, backdrop = "") {
    this.wanted = keys;
    this.backdrop = keys.includes(backdrop) ? "" : backdrop;
    for (const [key, controller] of this.asked) {
      if (!keys.includes(key) && key !== this.backdrop) {
        this.asked.delete(key);
        controller.abort();
      }
    }
    this.next();
  }

  next() {
    for (const key of this.backdrop ? [...this.wanted, this.backdrop] : this.wanted) {
      if (this.asked.size >= AT_ONCE) return;
      const tile = this.tiles.get(key);
      if (this.asked.has(key) || (tile && (!tile.coarse || key === this.backdrop))) continue;
      const controller = new AbortController();
      this.asked.set(key, controller);
      this.fetch(key, controller).then(
        (tile) => this.put(key, tile),
        (error) => {
          if (!controller.signal.aborted) this.error = error;
        },
      ).finally(() => {
        if (this.asked.get(key) === controller) this.asked.delete(key);
        this.next();
        this.changed();
      });
    }
  }

  /** @param {string} key @param {Tile} tile */
  put(key, tile) {
    this.peak = Math.max(this.peak, largest(tile.values));
    this.tiles.delete(key);
    this.tiles.set(key, tile);
    for (const old of this.tiles.keys()) {
      if (this.tiles.size <= KEEP) break;
      if (!this.wanted.includes(old) && old !== this.backdrop) this.tiles.delete(old);
    }
  }

  /** No answer is wanted any more. */
  close() {
    this.want([]);
  }

  /**
   * @param {string} key
   * @param {AbortController} controller
   * @returns {Promise<Tile>}
   */
  async fetch(key, controller) {
    const { signal } = controller, [z, y, x] = key.split("/").map(Number), step = 2 ** z, span = SIDE * step;
    const top = y * span, left = x * span;
    const bottom = Math.min(this.rows.length, top + span), right = Math.min(this.cols.length, left + span);
    const rows = Math.ceil((bottom - top) / step), cols = Math.ceil((right - left) / step);
    const [down, across] = [this.rows.tokens(top, bottom), this.cols.tokens(left, right)];
    const ask = { at: this.what.at, measure: this.what.measure, rows: down, cols: across };
    const finish = (/** @type {Float32Array} */ values, coarse = false) => ({ values, rows, cols, coarse, canvas: null, painted: "" });
    const plain = this.rows.plain && this.cols.plain, tall = down[1] - down[0], wide = across[1] - across[0];
    if (plain && z === 0) {
      const { buffers } = await this.source.ask({ kind: "tile", ...ask }, { signal });
      return finish(new Float32Array(buffers[0]));
    }
    // Words are merged from exact weights while these are not too many.
    if (!plain && tall * wide <= MOST_CELLS) {
      const { buffers } = await this.source.ask({ kind: "tile", ...ask }, { signal });
      const matrix = { values: new Float32Array(buffers[0]), rows: tall, cols: wide };
      const words = merged(matrix, this.rows, [top, bottom], this.cols, [left, right]);
      if (z === 0) return finish(words);
      return finish(gathered({ values: words, rows: bottom - top, cols: right - left }, cuts(bottom - top, step), cuts(right - left, step), this.what.pool));
    }
    // Otherwise pixels of tokens, moved to where their words are.
    /** @type {[number, number]} */
    const size = plain ? [rows, cols] : [Math.min(tall, MOST_PIXELS, 2 * rows), Math.min(wide, MOST_PIXELS, 2 * cols)];
    const shape = (/** @type {ArrayBuffer} */ buffer) => {
      const values = new Float32Array(buffer);
      if (plain) return values;
      const place = (/** @type {Axis} */ axis, /** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ pixels) => {
        const [start, end] = axis.tokens(from, to);
        return cuts(to - from, step).map((at) => Math.round((((at < to - from ? axis.entries[from + at].start : end) - start) * pixels) / (end - start)));
      };
      return gathered({ values, rows: size[0], cols: size[1] }, place(this.rows, top, bottom, size[0]), place(this.cols, left, right, size[1]), this.what.pool);
    };
    const onPart = (/** @type {import("./source.js").Reply} */ part) => {
      if (!part.head.coarse || signal.aborted || this.tiles.has(key)) return;
      this.put(key, finish(shape(part.buffers[0]), true));
      if (key === this.backdrop) controller.abort();
      this.changed();
    };
    const { buffers } = await this.source.ask({ kind: "map", ...ask, size, pool: this.what.pool }, { signal, onPart });
    return finish(shape(buffers[0]));
  }

  /**
   * A tile's picture, coloured.
   * @param {Tile} tile
   * @param {Look} look
   * @param {string} scale
   */
  picture(tile, look, scale) {
    const painted = `${this.peak} ${scale} ${look.paper}`;
    if (tile.canvas && tile.painted === painted) return tile.canvas;
    const canvas = tile.canvas ?? document.createElement("canvas");
    [canvas.width, canvas.height] = [tile.cols, tile.rows];
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const image = context.createImageData(tile.cols, tile.rows), out = new Uint32Array(image.data.buffer);
    const { to } = SCALES[scale], peak = this.peak || 1;
    for (let k = 0; k < out.length; k++) {
      const value = tile.values[k];
      out[k] = Number.isNaN(value) ? look.nan[(k + Math.floor(k / tile.cols)) % 2] : look.table[Math.max(0, Math.min(255, Math.round(to(value / peak) * 255)))];
    }
    context.putImageData(image, 0, 0);
    tile.canvas = canvas;
    tile.painted = painted;
    return canvas;
  }
}

/**
 * @param {number} count
 * @param {number} step
 */
const cuts = (count, step) => Array.from({ length: Math.ceil(count / step) + 1 }, (_, k) => Math.min(count, k * step));

/**
 * The weights between entries, from those between tokens: over keys they are added up, over queries averaged. Tokens that no
 * entry has are left out.
 * @param {import("./matrix.js").Matrix} matrix
 * @param {Axis} rows
 * @param {[number, number]} down
 * @param {Axis} cols
 * @param {[number, number]} across
 */
export function merged(matrix, rows, down, cols, across) {
  const height = down[1] - down[0], width = across[1] - across[0], out = new Float32Array(height * width);
  const [first, start] = [rows.entries[down[0]].start, cols.entries[across[0]].start];
  for (let y = 0; y < height; y++) {
    const row = rows.entries[down[0] + y];
    for (let x = 0; x < width; x++) {
      const column = cols.entries[across[0] + x];
      let sum = 0;
      for (let i = row.start - first; i < row.end - first; i++) {
        for (let j = column.start - start; j < column.end - start; j++) sum += matrix.values[i * matrix.cols + j];
      }
      out[y * width + x] = sum / (row.end - row.start);
    }
  }
  return out;
}
