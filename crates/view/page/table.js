// The numbers in sight as a table: for screen readers, and for whoever reads numbers.

import { number } from "./look.js";
import { say } from "./messages.js";

/**
 * @param {HTMLElement} box
 * @param {import("./lines.js").LinesPicture} picture
 * @param {number} digits
 */
export function fillTable(box, { rows, cols, window }, digits) {
  const table = document.createElement("table"), caption = document.createElement("caption"), wide = window.cols[1] - window.cols[0];
  caption.textContent = say("table_hint");
  const cell = (/** @type {"th" | "td"} */ tag, /** @type {string} */ text, /** @type {string} */ scope = "") => {
    const node = document.createElement(tag);
    node.textContent = text;
    if (scope) node.setAttribute("scope", scope);
    return node;
  };
  const head = table.createTHead().insertRow(), body = table.createTBody();
  head.append(cell("th", `${say("query")} \\ ${say("key")}`, "col"));
  for (let j = window.cols[0]; j < window.cols[1]; j++) head.append(cell("th", cols.entries[j].label, "col"));
  for (let i = window.rows[0]; i < window.rows[1]; i++) {
    const row = body.insertRow();
    row.append(cell("th", rows.entries[i].label, "row"));
    const start = (i - window.rows[0]) * wide;
    for (let k = start; k < start + wide; k++) row.append(cell("td", number(window.heads[0].values[k], digits)));
  }
  table.prepend(caption);
  box.replaceChildren(table);
}
