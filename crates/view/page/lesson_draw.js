// What the parts to try are drawn with.

const SVG = "http://www.w3.org/2000/svg";

/** The language of the page. */
const korean = document.documentElement.lang === "ko";

/** @param {string} english @param {string} koreanText */
export function tr(english, koreanText) {
  return korean ? koreanText : english;
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} name
 * @param {Record<string, string>} attributes
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function html(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {(Node | string)[]} children
 * @returns {SVGElement}
 */
export function svg(name, attributes, ...children) {
  const node = /** @type {SVGElement} */ (document.createElementNS(SVG, name));
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

/** Three digits, but exact zeros and ones as such. @param {number} value */
export function digits(value) {
  return value === 0 || value === 1 ? String(value) : value.toFixed(3).replace("-", "−");
}

/**
 * A row of weights as bars.
 * @param {string[]} names
 * @param {number[]} values
 * @param {import("./look.js").Look} look
 */
export function bars(names, values, look) {
  const rows = names.map((name, j) => {
    const bar = html("span", { class: "bar" });
    bar.style.width = `${100 * Math.max(0, Math.min(1, values[j]))}%`;
    bar.style.background = look.heads[0];
    return html("div", { class: "bar-row" }, html("span", { class: "bar-name" }, name), html("span", { class: "bar-room" }, bar), html("output", {}, digits(values[j])));
  });
  return html("div", { class: "bars" }, ...rows);
}

/**
 * A matrix of weights as a table with coloured cells.
 * @param {string[]} rows
 * @param {string[]} cols
 * @param {number[][]} values
 * @param {import("./look.js").Look} look
 */
export function table(rows, cols, values, look) {
  const head = html("tr", {}, html("th", {}), ...cols.map((name) => html("th", { scope: "col" }, name)));
  const body = rows.map((name, i) => html("tr", {}, html("th", { scope: "row" }, name), ...values[i].map((w) => painted(html("td", {}, digits(w)), w, look))));
  return html("table", { class: "weights" }, head, ...body);
}

/**
 * @template {HTMLElement} T
 * @param {T} node
 * @param {number} weight
 * @param {import("./look.js").Look} look
 */
export function painted(node, weight, look) {
  node.style.background = look.css(weight);
  node.style.color = look.inkOn(weight);
  return node;
}

/**
 * One of several buttons.
 * @param {[string, string][]} options Values and names.
 * @param {string} label
 * @param {(value: string) => void} chosen
 */
export function choices(options, label, chosen) {
  const buttons = options.map(([value, name]) => {
    const button = html("button", { type: "button", "data-value": value, "aria-pressed": "false" }, name);
    button.addEventListener("click", () => chosen(value));
    return button;
  });
  return html("div", { class: "choices", role: "group", "aria-label": label }, ...buttons);
}

/** @param {HTMLElement} group @param {string} value */
export function press(group, value) {
  for (const button of group.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.value === value));
}
