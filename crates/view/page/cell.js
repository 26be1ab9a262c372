// The arithmetic of a cell, step by step, in real numbers.

import { number } from "./look.js";
import { say } from "./messages.js";

/**
 * @param {HTMLElement} box
 * @param {import("./source.js").Reply} reply
 * @param {{query: string, key: string}} labels
 * @param {number} digits
 */
export function drawCell(box, { head, buffers }, labels, digits) {
  const show = (/** @type {number | null} */ value) => (value === null ? "−∞" : number(value, digits));
  const q = new Float32Array(buffers[0]), k = new Float32Array(buffers[1]);
  const list = document.createElement("ol"), title = document.createElement("p");
  title.className = "cell-of";
  title.textContent = say("cell_of", labels);
  const step = (/** @type {string} */ value, /** @type {string} */ text, /** @type {string} */ name) => {
    const item = document.createElement("li"), strong = document.createElement("b"), span = document.createElement("span");
    strong.textContent = value;
    span.textContent = text;
    item.dataset.step = name;
    item.append(strong, span);
    list.append(item);
    return item;
  };
  const terms = [...q.keys()].sort((a, b) => Math.abs(q[b] * k[b]) - Math.abs(q[a] * k[a])).slice(0, 3);
  const product = step(show(head.product), say("step_product", { dim: q.length }), "product"), sum = document.createElement("small");
  sum.textContent = `${terms.map((d) => `${show(q[d])}·${show(k[d])}`).join(" + ")} + …`;
  product.append(sum);
  step(show(head.scaled), say("step_scaled", { scale: number(head.scale, 4) }), "scaled");
  step(show(head.score), say(head.visible ? "step_score" : "step_hidden"), "score");
  step(show(head.exp), say("step_exp", { max: show(head.max) }), "exp");
  step(show(head.sum), say("step_sum"), "sum");
  step(show(head.weight), say("step_weight"), "weight").classList.add("result");
  if (head.norm !== undefined) step(show(head.norm), say("step_norm"), "norm");
  if (buffers[3]) {
    const share = new Float32Array(buffers[3]);
    step(show(Math.hypot(...share)), say("step_share"), "share").classList.add("result");
  }
  box.replaceChildren(title, list);
}
