// What a query attends to, as a list and in the text itself.

import { number } from "./look.js";
import { say } from "./messages.js";

/** Entries of the text that are shown around the one that is looked at. */
export const STRIP = 700;

/**
 * The strongest keys of a row.
 * @param {HTMLElement} list
 * @param {import("./axis.js").Axis} keys
 * @param {Float32Array | null} values Of all entries of the keys.
 * @param {number} digits
 */
export function drawStrongest(list, keys, values, digits) {
  list.replaceChildren();
  if (!values) return;
  const order = [...values.keys()].filter((j) => values[j] !== 0).sort((a, b) => (values[b] || Infinity) - (values[a] || Infinity)).slice(0, 8);
  const max = Math.max(...order.map((j) => values[j]).filter((v) => v > 0), Number.MIN_VALUE);
  for (const j of order) {
    const item = document.createElement("li"), bar = document.createElement("i");
    const label = document.createElement("span"), value = document.createElement("b");
    bar.style.width = `${((values[j] || 0) / max) * 100}%`;
    label.textContent = keys.entries[j].label;
    value.textContent = number(values[j], digits);
    item.append(bar, label, value);
    list.append(item);
  }
}

/**
 * The tokens from `from` to before `to`, made once and then only shaded.
 * @param {HTMLElement} box
 * @param {import("./axis.js").Axis} axis
 * @param {number} from
 * @param {number} to
 */
export function fillText(box, axis, from, to) {
  box.classList.toggle("parted", axis.parted);
  box.setAttribute("role", "listbox");
  box.replaceChildren(...axis.entries.slice(from, to).map((entry, k) => {
    const span = document.createElement("span");
    span.textContent = entry.text.trim() ? entry.text.replace(/\n/g, "⏎") : entry.label;
    span.dataset.index = String(from + k);
    span.setAttribute("role", "option");
    span.tabIndex = k === 0 ? 0 : -1;
    return span;
  }));
}

/**
 * Shades each token by what a query gives it; marks the query.
 * @param {HTMLElement} box
 * @param {import("./axis.js").Axis} axis
 * @param {Float32Array | null} values
 * @param {import("./look.js").Look} look
 * @param {number} chosen An entry, or −1.
 */
export function shadeText(box, axis, values, look, chosen) {
  let max = 0;
  if (values) for (const value of values) if (value > max) max = value;
  for (const node of box.children) {
    const span = /** @type {HTMLElement} */ (node), j = Number(span.dataset.index);
    const t = values && max > 0 ? (values[j] || 0) / max : 0, shaded = t > 0.02;
    span.style.background = shaded ? look.css(t * 0.85) : "";
    span.style.color = shaded ? look.inkOn(t * 0.85) : "";
    span.classList.toggle("pinned", j === chosen);
    span.classList.toggle("pale", Boolean(axis.entries[j]?.special) && !shaded);
    span.setAttribute("aria-selected", String(j === chosen));
  }
}

/**
 * @param {HTMLElement} title
 * @param {string | null} label
 */
export function titleReading(title, label) {
  title.textContent = label === null ? say("nothing") : say("strongest", { token: label });
}
