// Colours and numbers.

/**
 * @typedef {object} Look
 * @property {string} paper
 * @property {string} ink
 * @property {string} muted
 * @property {string} rule
 * @property {string} accent
 * @property {string} mark What is pinned.
 * @property {Uint32Array} table 256 colours as pixels.
 * @property {Uint32Array} difference
 * @property {[number, number]} nan
 * @property {string[]} heads
 * @property {(t: number) => string} css
 * @property {(t: number) => string} inkOn
 */

const PALETTES = JSON.parse(document.getElementById("palettes")?.textContent ?? "{}");

/** @param {string} hex Six digits. @returns {number} A pixel, little-endian RGBA. */
const pixel = (hex) => {
  const rgb = parseInt(hex, 16);
  return (0xff000000 | ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
};

/**
 * @param {string} text
 * @returns {Uint32Array}
 */
const pixels = (text) => Uint32Array.from({ length: 256 }, (_, k) => pixel(text.slice(k * 6, k * 6 + 6)));

/**
 * The colours of a theme, for canvases and files.
 * @param {string} theme
 * @returns {Look}
 */
export function makeLook(theme) {
  const style = getComputedStyle(document.documentElement), palette = PALETTES[theme];
  const css = (/** @type {string} */ key) => style.getPropertyValue(key).trim();
  const index = (/** @type {number} */ t) => Math.max(0, Math.min(255, Math.round(t * 255)));
  const table = pixels(palette.values);
  const linear = (/** @type {number} */ c) => (c <= 10 ? c / 3294 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const light = Array.from(table, (p) => 0.2126 * linear(p & 255) + 0.7152 * linear((p >> 8) & 255) + 0.0722 * linear((p >> 16) & 255));
  return {
    paper: css("--paper"), ink: css("--ink"), muted: css("--muted"), rule: css("--rule"), accent: css("--accent"),
    mark: palette.heads[1], heads: palette.heads, table, difference: pixels(palette.difference),
    nan: [pixel(css("--nan-pale").slice(1)), pixel(css("--nan-dark").slice(1))],
    css: (t) => (Number.isNaN(t) ? css("--nan-dark") : `#${palette.values.slice(index(t) * 6, index(t) * 6 + 6)}`),
    // Black or white, whichever has more contrast: at least 4.5 : 1 on every colour.
    inkOn: (t) => (light[index(t)] > 0.179 ? "#000000" : "#ffffff"),
  };
}

/**
 * Where a value lies between nothing and the largest, and back. Log: over four orders of magnitude.
 * @type {Record<string, {to: (ratio: number) => number, from: (t: number) => number}>}
 */
export const SCALES = {
  linear: { to: (r) => r, from: (t) => t },
  root: { to: (r) => Math.sqrt(r), from: (t) => t * t },
  log: { to: (r) => (Number.isNaN(r) ? NaN : r > 0 ? Math.max(0, 1 + Math.log10(r) / 4) : 0), from: (t) => 10 ** (4 * (t - 1)) },
};

/**
 * A number with as many digits as the source is true to.
 * @param {number} value
 * @param {number} digits
 */
export function number(value, digits) {
  if (Number.isNaN(value)) return "NaN";
  if (value === 0) return "0";
  const size = Math.abs(value), least = 10 ** -digits;
  if (size >= 10) return value.toFixed(size >= 10 ** digits ? 0 : Math.max(0, digits - Math.floor(Math.log10(size))));
  if (size >= least) return value.toFixed(digits);
  return digits > 2 ? value.toExponential(1) : `< ${least}`;
}
