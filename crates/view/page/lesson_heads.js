// Heads of a real model switched off. The program has run the model without each of them; the page shows what came of it.

import { bars, html, painted, tr } from "./lesson_draw.js";

/**
 * @typedef {{layer: number, head: number | null, loss: number, next: [string, number][]}} Without
 * @typedef {{model: string, text: string, layers: number, heads: number, loss: number, next: [string, number][], without: Without[]}} Data
 */

/** @param {HTMLElement} box @param {() => import("./look.js").Look} look */
export function heads(box, look) {
  /** @type {Data} */
  const data = JSON.parse(document.getElementById("switched-off")?.textContent ?? "{}");
  /** @type {Without | null} */
  let off = null;
  const result = html("div", { class: "side-by-side" }), note = html("p", { class: "note", "aria-live": "polite" });
  const columns = [...Array(data.heads).keys()].map(String), all = tr("all", "모두");
  const head = html("tr", {}, html("th", {}, tr("layer", "층")), ...[...columns, all].map((name) => html("th", { scope: "col" }, name)));
  const buttons = data.without.map((without) => {
    const name = `${without.layer}.${without.head ?? all}`;
    const button = html("button", { type: "button", class: "cell", "data-head": name, "aria-label": tr(`switch off ${name}`, `${name} 끄기`) }, "");
    button.addEventListener("click", () => {
      off = off === without ? null : without;
      draw();
    });
    return button;
  });
  const wide = data.heads + 1;
  const body = [...Array(data.layers).keys()].map((layer) => html("tr", {}, html("th", { scope: "row" }, String(layer)), ...buttons.slice(layer * wide, (layer + 1) * wide).map((button) => html("td", {}, button))));
  const say = tr(
    `The model “${data.model}” has read “${data.text}”. Click a head to switch it off: what does it write next? The more a head stands out, the more the text misses it.`,
    `모델 “${data.model}”가 “${data.text}”까지 읽었습니다. 헤드를 눌러 끄면 다음에 무엇을 쓸까요? 눈에 띄는 헤드일수록 없으면 글을 맞히기 어렵습니다.`,
  );
  box.replaceChildren(html("p", { class: "do" }, say), html("table", { class: "weights heads" }, head, ...body), result, note);
  const label = (/** @type {string} */ token) => token.replace(/\n/g, "↵").replace(/^ /, "␣");
  const list = (/** @type {string} */ title, /** @type {[string, number][]} */ next) =>
    html("div", { class: "grow" }, html("b", {}, title), bars(next.map(([token]) => label(token)), next.map(([, p]) => p), look()));
  const draw = () => {
    const most = Math.max(...data.without.filter(({ head }) => head !== null).map(({ loss }) => loss - data.loss));
    data.without.forEach((without, n) => {
      painted(buttons[n], Math.max(0, Math.min(1, (without.loss - data.loss) / most)), look());
      buttons[n].setAttribute("aria-pressed", String(off === without));
      buttons[n].textContent = off === without ? "✕" : "";
    });
    const chosen = off;
    result.replaceChildren(list(tr("all heads", "모든 헤드"), data.next), ...(chosen ? [list(tr("switched off", "끈 뒤"), chosen.next)] : []));
    const change = chosen ? chosen.loss - data.loss : 0;
    note.textContent = chosen
      ? tr(`Without ${chosen.layer}.${chosen.head ?? all}: loss ${chosen.loss.toFixed(3)}, ${change >= 0 ? "+" : "−"}${Math.abs(change).toFixed(3)} nats a token`, `${chosen.layer}.${chosen.head ?? all} 없이: 손실 ${chosen.loss.toFixed(3)}, 토큰마다 ${change >= 0 ? "+" : "−"}${Math.abs(change).toFixed(3)}내트`)
      : tr(`Loss with all heads: ${data.loss.toFixed(3)} nats a token`, `모든 헤드가 있을 때 손실: 토큰마다 ${data.loss.toFixed(3)}내트`);
  };
  return draw;
}
