// Move a token, and see whether positions matter.

import { choices, html, press, table, tr } from "./lesson_draw.js";
import { attend, mix, normal } from "./lesson_weights.js";

const WORDS = ["dog", "bites", "the", "man"], DIM = 8;
/** ALiBi's slope, and what counts as no difference. */
const [SLOPE, ROUNDING] = [0.5, 1e-4];

/** @param {HTMLElement} box @param {() => import("./look.js").Look} look */
export function positions(box, look) {
  const random = normal(3), vectors = WORDS.map(() => Array.from({ length: DIM }, random));
  let order = WORDS.map((_, n) => n), way = "none";
  /** @type {[string, string][]} */
  const ways = [["none", tr("no positions", "위치 없음")], ["sines", tr("sines added", "사인파 더하기")], ["rope", "RoPE"], ["alibi", "ALiBi"], ["causal", tr("causal mask", "인과 마스크")]];
  const group = choices(ways, tr("Positions", "위치"), (chosen) => {
    way = chosen;
    draw();
  });
  const line = html("div", { class: "words", role: "list" }), result = html("div", {}), note = html("p", { class: "note", "aria-live": "polite" });
  const say = tr("Move a word with the arrows (or drag it), and compare its output with that in the first order.", "화살표로(또는 끌어서) 단어를 옮기고, 출력이 처음 순서일 때와 같은지 비교하십시오.");
  box.replaceChildren(html("p", { class: "do" }, say), group, line, result, note);

  const output = (/** @type {number[]} */ words) => {
    const x = words.map((word, p) => vectors[word].map((v, d) => v + (way === "sines" ? sine(p, d) : 0)));
    const turned = way === "rope" ? x.map((row, p) => row.map((_, d) => rotated(row, p, d))) : x;
    const { weights } = attend({ q: turned, k: turned, scale: 1 / Math.sqrt(DIM), slope: way === "alibi" ? SLOPE : 0, visible: way === "causal" ? (i, j) => j <= i : undefined });
    return { weights, out: mix(weights, x) };
  };
  const swap = (/** @type {number} */ a, /** @type {number} */ b, focus = "") => {
    if (b < 0 || b >= order.length) return;
    [order[a], order[b]] = [order[b], order[a]];
    draw();
    if (focus) line.querySelector(`[data-word="${order[b]}"] [data-move="${focus}"]`)?.dispatchEvent(new Event("refocus"));
  };
  const draw = () => {
    const first = output(WORDS.map((_, n) => n)), now = output(order);
    const change = order.map((word, p) => Math.max(...now.out[p].map((y, d) => Math.abs(y - first.out[word][d]))));
    line.replaceChildren(...order.map((word, p) => {
      const move = (/** @type {number} */ to, /** @type {string} */ sign, /** @type {string} */ name) => {
        const button = html("button", { type: "button", "data-move": sign, "aria-label": `${WORDS[word]} ${name}` }, sign);
        button.disabled = to < 0 || to >= order.length;
        button.addEventListener("click", () => swap(p, to, sign));
        button.addEventListener("refocus", () => button.focus());
        return button;
      };
      const size = html("small", {}, change[p] < ROUNDING ? tr("same output", "같은 출력") : tr(`differs by ${change[p].toFixed(3)}`, `차이 ${change[p].toFixed(3)}`));
      const item = html("div", { class: "word", role: "listitem", draggable: "true", "data-word": String(word) }, html("b", {}, WORDS[word]), size, html("span", {}, move(p - 1, "←", tr("to the left", "왼쪽으로")), move(p + 1, "→", tr("to the right", "오른쪽으로"))));
      item.addEventListener("dragstart", (event) => event.dataTransfer?.setData("text/plain", String(p)));
      item.addEventListener("dragover", (event) => event.preventDefault());
      item.addEventListener("drop", (event) => {
        event.preventDefault();
        swap(Number(event.dataTransfer?.getData("text/plain")), p);
      });
      return item;
    }));
    press(group, way);
    const names = order.map((word) => WORDS[word]);
    result.replaceChildren(table(names, names, now.weights, look()));
    const moved = order.some((word, p) => word !== p), most = Math.max(...change);
    box.dataset.change = String(most);
    note.textContent = !moved
      ? tr("This is the first order.", "처음 순서입니다.")
      : most < ROUNDING
        ? tr("The order has changed, and no output has: attention did not notice.", "순서가 바뀌었는데 출력은 그대로입니다. 어텐션은 알아채지 못했습니다.")
        : tr("The outputs differ: the order is seen.", "출력이 달라졌습니다. 순서를 알고 있습니다.");
  };
  return draw;
}

/** @param {number} p @param {number} d */
function sine(p, d) {
  const angle = p / 10000 ** ((2 * Math.floor(d / 2)) / DIM);
  return d % 2 ? Math.cos(angle) : Math.sin(angle);
}

/** Entry d of a vector whose pairs are turned by the angles of position p. @param {number[]} x @param {number} p @param {number} d */
function rotated(x, p, d) {
  const even = d - (d % 2), angle = p / 10000 ** (even / DIM), [c, s] = [Math.cos(angle), Math.sin(angle)];
  return d % 2 ? x[even] * s + x[even + 1] * c : x[even] * c - x[even + 1] * s;
}
