// What the page says, from the table that the program shares.

/** @type {{words: Record<string, [string, string]>, terms: Record<string, {lesson: string, text: [string, string]}>}} */
const TABLE = JSON.parse(document.getElementById("messages")?.textContent ?? '{"words":{},"terms":{}}');

let column = 0;

/** @param {string} language */
export function speak(language) {
  column = language === "ko" ? 1 : 0;
}

/**
 * A message, with its {gaps} filled.
 * @param {string} name
 * @param {Record<string, string | number>} [gaps]
 */
export function say(name, gaps = {}) {
  const text = TABLE.words[name]?.[column] ?? name;
  return text.replace(/\{(\w+)\}/g, (_, gap) => String(gaps[gap] ?? ""));
}

/**
 * The sentence that explains a term and the address of its lesson, or nothing.
 * @param {string} name
 */
export function term(name) {
  const found = TABLE.terms[name];
  if (!found) return null;
  return { text: found.text[column], lesson: `lessons/${column ? "ko" : "en"}/${found.lesson}.html#${name}` };
}
