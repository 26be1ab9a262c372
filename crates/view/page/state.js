// What the page shows, and its link. Everything that a link restores stands here, in the fragment's own words.

/** @typedef {import("./source.js").At} At */

/**
 * @typedef {object} Rect A part of the matrix, in entries of the axes.
 * @property {number} top
 * @property {number} left
 * @property {number} bottom
 * @property {number} right
 */

/**
 * @typedef {object} State
 * @property {string} run
 * @property {import("./source.js").SiteKind} site
 * @property {number} layer
 * @property {number} head
 * @property {import("./source.js").Measure} measure
 * @property {import("./source.js").Pool} pool
 * @property {"linear" | "root" | "log"} scale
 * @property {"map" | "lines" | "heads" | "neurons" | "table"} view
 * @property {"words" | "tokens"} unit
 * @property {boolean} hide
 * @property {Rect | null} at The part in sight; none is all of it.
 * @property {number | null} pin A query token.
 * @property {[number, number] | null} cell The tokens of the arithmetic.
 * @property {number[]} heads Heads overlaid.
 * @property {import("./source.js").HeadName[]} off
 * @property {At | null} with The second of a comparison.
 * @property {"en" | "ko"} lang
 * @property {"light" | "dark" | "auto"} theme
 */

/** @type {State} */
const DEFAULTS = {
  run: "", site: "attention", layer: 0, head: 0, measure: "weights", pool: "max", scale: "linear", view: "map", unit: "words",
  hide: false, at: null, pin: null, cell: null, heads: [], off: [], with: null, lang: "en", theme: "auto",
};

const CHOICES = {
  site: ["encoder", "decoder", "cross", "attention"], measure: ["weights", "norms", "rollout"], pool: ["max", "mean"],
  scale: ["linear", "root", "log"], view: ["map", "lines", "heads", "neurons", "table"], unit: ["words", "tokens"],
  lang: ["en", "ko"], theme: ["light", "dark", "auto"],
};

/** @param {string} text */
const integers = (text) => text.split(/[.,]/).map(Number).filter(Number.isInteger);

/**
 * What a fragment or the file says, as far as it can be understood.
 * @param {Record<string, string>} given
 * @returns {Partial<State>}
 */
export function parse(given) {
  /** @type {any} */
  const out = {};
  for (const [key, value] of Object.entries(given)) {
    const choices = /** @type {Record<string, string[]>} */ (CHOICES)[key];
    if (choices) {
      if (choices.includes(value)) out[key] = value;
    } else if (key === "run") {
      out.run = value;
    } else if (key === "layer" || key === "head" || key === "pin") {
      if (Number.isInteger(Number(value))) out[key] = Number(value);
    } else if (key === "hide") {
      out.hide = value === "1";
    } else if (key === "at") {
      const [top, left, bottom, right] = value.split(",").map(Number);
      if ([top, left, bottom, right].every(Number.isFinite) && bottom > top && right > left) out.at = { top, left, bottom, right };
    } else if (key === "cell") {
      const cell = integers(value);
      if (cell.length === 2) out.cell = cell;
    } else if (key === "heads") {
      out.heads = integers(value).filter((head) => head >= 0);
    } else if (key === "off") {
      out.off = value.split(",").map(headName).filter(Boolean);
    } else if (key === "with") {
      const [run, ...rest] = value.split("~"), name = headName(rest.join("."));
      if (name) out.with = { run, site: name[0], layer: name[1], head: name[2] };
    }
  }
  return out;
}

/** @param {string} text */
function headName(text) {
  const [site, layer, head] = text.split(".");
  return CHOICES.site.includes(site) && /^\d+$/.test(layer) && /^-?\d+$/.test(head) ? [site, Number(layer), Number(head)] : null;
}

/**
 * The fragment that restores a state.
 * @param {State} state
 */
export function fragment(state) {
  /** @type {[string, string][]} */
  const parts = [];
  const round = (/** @type {number} */ x) => String(Math.round(x * 100) / 100);
  for (const [key, value] of /** @type {[string, any][]} */ (Object.entries(state))) {
    if (value === null || value === "" || (Array.isArray(value) && !value.length)) continue;
    if (value === /** @type {any} */ (DEFAULTS)[key] && !["layer", "head", "site", "scale", "unit", "lang"].includes(key)) continue;
    if (key === "at") parts.push([key, [value.top, value.left, value.bottom, value.right].map(round).join(",")]);
    else if (key === "heads") parts.push([key, value.join(".")]);
    else if (key === "off") parts.push([key, value.map((/** @type {any[]} */ name) => name.join(".")).join(",")]);
    else if (key === "with") parts.push([key, `${value.run}~${value.site}~${value.layer}~${value.head}`]);
    else if (key === "hide") parts.push([key, value ? "1" : "0"]);
    else parts.push([key, String(value)]);
  }
  return parts.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&");
}

/** What the address says. */
export function fromAddress() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/** @returns {State} */
export const defaults = () => ({ ...DEFAULTS, heads: [], off: [] });
