// The entries along one side of a matrix: tokens, or whole words, with special tokens or without.

/**
 * @typedef {object} Entry
 * @property {number} start Its first token.
 * @property {number} end Before which it ends.
 * @property {string} label As it stands beside a matrix: spaces and line ends visible.
 * @property {string} text As it stands in the text.
 * @property {boolean} special
 */

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffd]/g;

/**
 * As the pictures of the library show a token: spaces at its ends and line ends become visible.
 * @param {string} token
 */
export function visible(token) {
  const ends = token.replace(/^[ \u00a0▁]+|[ \u00a0▁]+$/g, (spaces) => "·".repeat(spaces.length));
  const shown = ends.replace(/▁/g, " ").replace(/\n/g, "⏎").replace(/\r/g, "␍").replace(/\t/g, "⇥").replace(HIDDEN, "□");
  return shown || "∅";
}

export class Axis {
  /**
   * @param {import("./source.js").Axis} tokens
   * @param {"words" | "tokens"} unit
   * @param {boolean} hide
   */
  constructor(tokens, unit, hide) {
    this.count = tokens.labels.length;
    this.entries = entries(tokens, unit === "words", hide ? new Set(tokens.special) : new Set());
    // An axis of nothing is no axis: then they are shown after all.
    if (!this.entries.length) this.entries = entries(tokens, unit === "words", new Set());
    const special = new Set(tokens.special);
    for (const entry of this.entries) entry.special = special.has(entry.start);
    /** Whether entries are the tokens, one by one. */
    this.plain = this.entries.length === this.count;
    this.parted = !tokens.labels.some((label) => /^[ \n\u00a0▁]/.test(label));
  }

  get length() {
    return this.entries.length;
  }

  /**
   * The tokens from the first to before the last of some entries.
   * @param {number} from
   * @param {number} to
   * @returns {[number, number]}
   */
  tokens(from, to) {
    return [this.entries[from].start, this.entries[to - 1].end];
  }

  /**
   * The entry of a token, or −1.
   * @param {number} token
   */
  entryOf(token) {
    let [low, high] = [0, this.entries.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.entries[middle].start <= token) low = middle;
      else high = middle - 1;
    }
    const entry = this.entries[low];
    return entry && entry.start <= token && token < entry.end ? low : -1;
  }
}

/**
 * @param {import("./source.js").Axis} tokens
 * @param {boolean} merge
 * @param {Set<number>} hidden
 */
function entries(tokens, merge, hidden) {
  /** @type {Entry[]} */
  const out = [];
  let word = NaN;
  tokens.labels.forEach((label, i) => {
    if (hidden.has(i)) return;
    const last = out[out.length - 1];
    if (merge && last && tokens.words[i] === word && last.end === i) {
      last.end = i + 1;
      return;
    }
    word = tokens.words[i];
    out.push({ start: i, end: i + 1, label: "", text: label, special: false });
  });
  for (const entry of out) {
    const joined = tokens.labels.slice(entry.start, entry.end).join("");
    const name = merge ? (tokens.word_labels[tokens.words[entry.start]] ?? joined) : joined;
    entry.label = visible(merge ? name.replace(/^[ ▁]+/, "") || name : name);
    // The space before a word belongs to the text, though the word's name has none.
    const space = /^[ \n\u00a0▁]*/.exec(joined)?.[0] ?? "";
    entry.text = (merge && entry.end - entry.start > 1 ? space + name.trimStart() : joined).replace(/▁/g, " ");
  }
  return out;
}
