// Drag a query and its keys, and see the weights move.

import { bars, html, svg, tr } from "./lesson_draw.js";
import { attend } from "./lesson_weights.js";

/** Half the side of the plane, and pixels a unit. */
const [REACH, UNIT] = [3, 50];
const STEP = 0.1;

/** @param {HTMLElement} box @param {() => import("./look.js").Look} look */
export function drag(box, look) {
  /** @type {Record<string, [number, number]>} */
  const at = { q: [1.5, 1], k0: [2, 0.5], k1: [-0.5, 2], k2: [-1.5, -1] };
  const keys = ["k0", "k1", "k2"], side = 2 * REACH * UNIT;
  const plane = svg("svg", { viewBox: `${-side / 2} ${-side / 2} ${side} ${side}`, class: "plane" });
  const result = html("div", {}), note = html("p", { class: "note", "aria-live": "polite" });
  const say = tr("Drag the dots, or focus one and use the arrow keys.", "점을 끌거나, 점을 선택하고 화살표 키를 쓰십시오.");
  box.replaceChildren(html("p", { class: "do" }, say), html("div", { class: "side-by-side" }, plane, html("div", { class: "grow" }, result, note)));

  const lines = [-2, -1, 1, 2].flatMap((n) => [
    svg("line", { x1: n * UNIT, x2: n * UNIT, y1: -side / 2, y2: side / 2, class: "grid" }),
    svg("line", { y1: n * UNIT, y2: n * UNIT, x1: -side / 2, x2: side / 2, class: "grid" }),
  ]);
  plane.append(...lines, svg("line", { x1: -side / 2, x2: side / 2, class: "axis" }), svg("line", { y1: -side / 2, y2: side / 2, class: "axis" }));
  const dots = new Map(Object.keys(at).map((name) => {
    const arrow = svg("line", { x1: 0, y1: 0, class: "arrow" });
    const dot = svg("g", { tabindex: 0, role: "button", class: "dot", "data-dot": name }, svg("circle", { r: 22, class: "touch" }), svg("circle", { r: 11, class: "ink" }), svg("text", { class: "name" }, name));
    plane.append(arrow);
    return [name, { arrow, dot }];
  }));
  for (const { dot } of dots.values()) plane.append(dot);

  const clamp = (/** @type {number} */ x) => Math.max(-REACH, Math.min(REACH, Math.round(x / STEP) * STEP));
  const move = (/** @type {string} */ name, /** @type {number} */ x, /** @type {number} */ y) => {
    at[name] = [clamp(x), clamp(y)];
    draw();
  };
  for (const [name, { dot }] of dots) {
    dot.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      dot.focus();
      dot.setPointerCapture(event.pointerId);
    });
    dot.addEventListener("pointermove", (event) => {
      if (!dot.hasPointerCapture(event.pointerId)) return;
      const room = plane.getBoundingClientRect(), scale = (2 * REACH) / room.width;
      move(name, (event.clientX - room.left) * scale - REACH, REACH - (event.clientY - room.top) * scale);
    });
    dot.addEventListener("keydown", (event) => {
      /** @type {Record<string, [number, number]>} */
      const steps = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
      const step = steps[event.key];
      if (!step) return;
      event.preventDefault();
      move(name, at[name][0] + step[0], at[name][1] + step[1]);
    });
  }

  const short = (/** @type {number} */ x) => (Math.round(100 * x) / 100).toString().replace("-", "−");
  const draw = () => {
    const colours = look().heads;
    for (const [name, { arrow, dot }] of dots) {
      const [x, y] = at[name].map((c) => c * UNIT), colour = colours[name === "q" ? 1 : 0];
      arrow.setAttribute("x2", String(x));
      arrow.setAttribute("y2", String(-y));
      arrow.setAttribute("stroke", colour);
      dot.setAttribute("transform", `translate(${x} ${-y})`);
      dot.setAttribute("aria-label", `${name}: ${at[name].map(short).join(", ")}`);
      dot.querySelector(".ink")?.setAttribute("fill", colour);
    }
    const { scores, weights } = attend({ q: [at.q], k: keys.map((key) => at[key]), scale: 1 / Math.SQRT2 });
    result.replaceChildren(bars(keys, weights[0], look()));
    note.textContent = `q·k/√2: ${scores[0].map(short).join(", ")}`;
    box.dataset.weights = weights[0].join(" ");
  };
  return draw;
}
