// Turn √d off and raise d.

import { bars, html, tr } from "./lesson_draw.js";
import { attend, normal } from "./lesson_weights.js";

const KEYS = 10;
/** d is a power of 2, up to 2 to this. */
const MOST = 10;

/** @param {HTMLElement} box @param {() => import("./look.js").Look} look */
export function scale(box, look) {
  const slider = html("input", { type: "range", min: "0", max: String(MOST), value: "2", step: "1" }), shown = html("output", {});
  const check = html("input", { type: "checkbox" });
  check.checked = true;
  const result = html("div", {}), note = html("p", { class: "note", "aria-live": "polite" });
  const size = html("label", {}, "d = ", shown, slider), divide = html("label", {}, check, tr(" divide by √d", " √d로 나누기"));
  box.replaceChildren(html("div", { class: "controls" }, size, divide), result, note);
  const random = normal(11), vector = () => Array.from({ length: 2 ** MOST }, random);
  // Long vectors once; a smaller d takes their beginnings.
  const q = vector(), k = Array.from({ length: KEYS }, vector);
  const draw = () => {
    const d = 2 ** Number(slider.value), cut = (/** @type {number[]} */ x) => x.slice(0, d);
    const { scores, weights } = attend({ q: [cut(q)], k: k.map(cut), scale: check.checked ? 1 / Math.sqrt(d) : 1 });
    shown.textContent = String(d);
    result.replaceChildren(bars(k.map((_, j) => `k${j}`), weights[0], look()));
    const spread = Math.sqrt(scores[0].reduce((sum, s) => sum + s * s, 0) / KEYS), most = Math.max(...weights[0]);
    const gradient = weights[0].reduce((sum, w) => sum + w * (1 - w), 0);
    note.textContent = tr(
      `Typical score ${spread.toFixed(2)}, largest weight ${most.toFixed(3)}, gradient Σ w(1 − w) = ${gradient.toFixed(3)}`,
      `점수의 보통 크기 ${spread.toFixed(2)}, 가장 큰 가중치 ${most.toFixed(3)}, 기울기 Σ w(1 − w) = ${gradient.toFixed(3)}`,
    );
    box.dataset.most = String(most);
  };
  slider.addEventListener("input", draw);
  check.addEventListener("input", draw);
  return draw;
}
