// Draw a mask, and see the weights that are left.

import { choices, digits, html, painted, press, tr } from "./lesson_draw.js";
import { attend, normal } from "./lesson_weights.js";

const TOKENS = 6;

/** @type {Record<string, (i: number, j: number) => boolean>} */
const PRESETS = {
  none: () => true,
  causal: (i, j) => j <= i,
  padding: (_, j) => j < TOKENS - 2,
  window: (i, j) => j <= i && i - j < 3,
  inverted: (i, j) => j > i,
};

/** @param {HTMLElement} box @param {() => import("./look.js").Look} look */
export function mask(box, look) {
  const random = normal(5), rows = () => Array.from({ length: TOKENS }, () => Array.from({ length: 8 }, random));
  const q = rows(), k = rows();
  let visible = grid(PRESETS.causal);
  const names = [["none", tr("none", "없음")], ["causal", tr("causal", "인과")], ["padding", tr("padding", "패딩")], ["window", tr("window", "창")], ["inverted", tr("inverted", "뒤집힘")]];
  const presets = choices(/** @type {[string, string][]} */ (names), tr("Masks", "마스크"), (name) => {
    visible = grid(PRESETS[name]);
    draw();
  });
  const cells = visible.map((row, i) => row.map((_, j) => html("button", { type: "button", class: "cell", "data-cell": `${i},${j}`, tabindex: i + j ? "-1" : "0" })));
  const sums = cells.map(() => html("td", { class: "sum" }));
  const head = html("tr", {}, html("th", {}), ...cells[0].map((_, j) => html("th", { scope: "col" }, `k${j}`)), html("th", { scope: "col" }, "Σ"));
  const body = cells.map((row, i) => html("tr", {}, html("th", { scope: "row" }, `q${i}`), ...row.map((cell) => html("td", {}, cell)), sums[i]));
  const matrix = html("table", { class: "weights mask" }, head, ...body), note = html("p", { class: "note", "aria-live": "polite" });
  const say = tr("Click or drag over cells to hide and show them. Keys: arrows and Space.", "칸을 누르거나 끌어서 가리고 보이게 하십시오. 키보드: 화살표와 스페이스.");
  box.replaceChildren(html("p", { class: "do" }, say), presets, matrix, note);

  /** Whether a drag shows or hides; nothing while there is none. @type {boolean | null} */
  let painting = null;
  const set = (/** @type {number} */ i, /** @type {number} */ j, /** @type {boolean} */ value) => {
    if (visible[i][j] === value) return;
    visible[i][j] = value;
    draw();
  };
  const place = (/** @type {Element | null} */ node) => /** @type {HTMLElement | null} */ (node)?.dataset?.cell?.split(",").map(Number);
  matrix.addEventListener("pointerdown", (event) => {
    const at = place(/** @type {Element} */ (event.target));
    if (!at) return;
    event.preventDefault();
    cells[at[0]][at[1]].focus();
    painting = !visible[at[0]][at[1]];
    set(at[0], at[1], painting);
  });
  matrix.addEventListener("pointermove", (event) => {
    const at = painting === null ? null : place(document.elementFromPoint(event.clientX, event.clientY));
    if (at && painting !== null) set(at[0], at[1], painting);
  });
  window.addEventListener("pointerup", () => (painting = null));
  matrix.addEventListener("keydown", (event) => {
    const at = place(/** @type {Element} */ (event.target));
    if (!at) return;
    /** @type {Record<string, [number, number]>} */
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[event.key];
    if (step) {
      const next = cells[Math.max(0, Math.min(TOKENS - 1, at[0] + step[0]))][Math.max(0, Math.min(TOKENS - 1, at[1] + step[1]))];
      cells.flat().forEach((cell) => (cell.tabIndex = cell === next ? 0 : -1));
      next.focus();
    } else if (event.key === " " || event.key === "Enter") {
      set(at[0], at[1], !visible[at[0]][at[1]]);
    } else {
      return;
    }
    event.preventDefault();
  });

  const draw = () => {
    const { weights } = attend({ q, k, scale: 1 / Math.sqrt(8), visible: (i, j) => visible[i][j] });
    weights.forEach((row, i) => {
      row.forEach((weight, j) => {
        const cell = painted(cells[i][j], weight, look());
        cell.textContent = visible[i][j] ? weight.toFixed(2) : "·";
        cell.setAttribute("aria-pressed", String(visible[i][j]));
        cell.setAttribute("aria-label", `q${i}, k${j}: ${visible[i][j] ? digits(weight) : tr("hidden", "가림")}`);
      });
      const sum = row.reduce((a, b) => a + b, 0);
      sums[i].textContent = sum.toFixed(2);
    });
    press(presets, Object.keys(PRESETS).find((name) => String(grid(PRESETS[name])) === String(visible)) ?? "");
    const empty = visible.flatMap((row, i) => (row.some(Boolean) ? [] : [`q${i}`])).join(", ");
    note.textContent = empty ? tr(`${empty} sees nothing: all weights 0, no NaN.`, `${empty}: 아무것도 보지 못하므로 가중치가 모두 0이고 NaN이 아닙니다.`) : tr("Every row adds up to 1.", "행마다 더하면 1입니다.");
  };
  return draw;
}

/** @param {(i: number, j: number) => boolean} rule */
function grid(rule) {
  return Array.from({ length: TOKENS }, (_, i) => Array.from({ length: TOKENS }, (_, j) => rule(i, j)));
}
