// An exercise on a page of the lessons: what is typed is compared with what the program has computed.

import { html, tr } from "./lesson_draw.js";

/**
 * @typedef {{en: string, ko: string}} Text
 * @typedef {{numbers?: {values: (number | null)[], decimals: number}, choice?: {options: Text[], right: number}, head?: {right: [number, number][]}}} Expected
 * @typedef {{numbers?: (number | null)[], choice?: number, head?: [number, number]}} Answer
 * @typedef {{name: string, expected: Expected, mistakes: {name: string, answer: Answer, why: Text}[], explanation: Text}} Exercise
 */

/** @type {Record<string, Exercise>} */
const ALL = JSON.parse(document.getElementById("exercises")?.textContent ?? "{}");

/** @param {Text} text */
const told = (text) => tr(text.en, text.ko);

/**
 * Numbers however they are separated, with the fewest digits that one has after its point. Null if a word is none.
 * @param {string} typed
 */
function numbers(typed) {
  const words = typed.replace(/[−–]/g, "-").replace(/∞/g, "Infinity").split(/[\s[\](){},;|×x*]+/).filter(Boolean);
  const values = words.map((word) => (/^nan$/i.test(word) ? NaN : word.includes("/") ? Number(word.split("/")[0]) / Number(word.split("/")[1]) : Number(word)));
  if (values.some((value, n) => Number.isNaN(value) && !/^nan$/i.test(words[n]))) return null;
  return { values, decimals: Math.min(...words.map((word) => (word.includes("/") ? Infinity : (word.split(".")[1] ?? "").length))) };
}

/** @param {number[]} a @param {(number | null)[]} b @param {number} within */
function near(a, b, within) {
  // What is no number is null in JSON.
  return a.length === b.length && a.every((x, n) => { const y = b[n]; return y === null ? !Number.isFinite(x) : x === y || Math.abs(x - y) <= within; });
}

/**
 * @param {Exercise} exercise
 * @param {string} typed
 * @returns {{right: boolean, mistake?: string, say: string}}
 */
function judged({ expected, mistakes, explanation }, typed) {
  const right = { right: true, say: told(explanation) }, wrong = (/** @type {string} */ say) => ({ right: false, say });
  const known = (/** @type {(answer: Answer) => boolean | undefined} */ test) => {
    const found = mistakes.find(({ answer }) => test(answer));
    return found && { right: false, mistake: found.name, say: told(found.why) };
  };
  const not = wrong(tr("That is not it.", "아닙니다."));
  if (expected.choice) {
    const at = Number(typed);
    return at === expected.choice.right ? right : (known((answer) => answer.choice === at) ?? not);
  }
  if (expected.head) {
    const place = typed.match(/\d+/g)?.map(Number) ?? [];
    if (place.length !== 2) return wrong(tr("Type a layer and a head, such as 4.3.", "층과 헤드를 4.3처럼 쓰십시오."));
    if (expected.head.right.some((head) => String(head) === String(place))) return right;
    return known((answer) => String(answer.head) === String(place)) ?? not;
  }
  const read = numbers(typed), { values, decimals } = /** @type {{values: (number | null)[], decimals: number}} */ (expected.numbers);
  const grouped = numbers(typed.replace(/,/g, ""));
  const got = read?.values.length !== values.length && grouped?.values.length === values.length ? grouped : read;
  if (!got) return wrong(tr("That is no list of numbers: separate them by spaces.", "수가 아닌 것이 있습니다. 수를 빈칸으로 나누어 쓰십시오."));
  const fine = decimals ? 1.0001 * 10 ** -decimals : 1e-6, coarse = got.decimals < decimals ? 0.5000001 * 10 ** -got.decimals : fine;
  if (near(got.values, values, fine)) return right;
  const within = (/** @type {number} */ distance) => known((answer) => answer.numbers && near(got.values, answer.numbers, distance));
  const mistake = within(fine);
  if (mistake) return mistake;
  if (near(got.values, values, coarse)) return wrong(tr(`Right so far as it goes: give ${decimals} digits after the point.`, `여기까지는 맞습니다. 소수점 아래 ${decimals}자리까지 쓰십시오.`));
  if (got.values.length !== values.length) return within(coarse) ?? wrong(tr(`${values.length} numbers are asked for; these are ${got.values.length}.`, `수 ${values.length}개를 물었는데 ${got.values.length}개를 쓰셨습니다.`));
  return within(coarse) ?? not;
}

/** @param {HTMLElement} box */
export function exercises(box) {
  const exercise = ALL[box.dataset.exercise ?? ""], result = html("p", { class: "verdict", "aria-live": "polite" });
  const show = (/** @type {string} */ typed) => {
    const verdict = judged(exercise, typed);
    result.textContent = `${verdict.right ? "✓" : "✗"} ${verdict.say}`;
    result.dataset.right = String(verdict.right);
    result.dataset.mistake = verdict.mistake ?? "";
  };
  if (exercise.expected.choice) {
    const options = exercise.expected.choice.options.map((option, n) => {
      const button = html("button", { type: "button", "data-value": String(n) }, `${"abcdefgh"[n]}) ${told(option)}`);
      button.addEventListener("click", () => show(String(n)));
      return button;
    });
    box.replaceChildren(html("div", { class: "choices column", role: "group" }, ...options), result);
  } else {
    const field = html("input", { type: "text", autocomplete: "off", "aria-label": tr("answer", "답") });
    const form = html("form", {}, field, html("button", { type: "submit" }, tr("Check", "확인")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value.trim()) show(field.value);
    });
    box.replaceChildren(form, result);
  }
  return () => {};
}
