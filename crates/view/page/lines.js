// Queries at the left, keys at the right, and a line for each weight, the stronger the darker.

function linesLayout(shown, width, tallest) {
  const count = Math.max(shown.rows, shown.cols);
  const step = Math.max(count > 120 ? 3 : 13, Math.min(26, tallest / count));
  const size = Math.min(13, step * 0.86), labelled = step >= 10;
  const longest = (list) => Math.min(160, list.reduce((max, entry) => Math.max(max, 1.1 * measure(entry.label, size)), 30));
  const left = (labelled ? longest(shown.queries) : 36) + 12;
  const right = Math.max(left + 120, Math.min(width - (labelled ? longest(shown.keys) : 36) - 12, left + 520));
  return { left, right, top: 34, step, size, labelled, total: { width, height: 34 + count * step, content: right + (labelled ? longest(shown.keys) : 36) + 12 } };
}

function drawLines(painter, { shown, look, words, hover, pinnedRow }, { left, right, top, step, size, labelled }) {
  const y = (i) => top + (i + 0.5) * step, bend = (right - left) * 0.4;
  const chosen = pinnedRow >= 0 ? pinnedRow : hover ? hover.i : -1;
  const chosenKey = chosen < 0 && hover ? hover.j : -1;
  const lines = [];
  for (let i = 0; i < shown.rows; i++) {
    for (let j = 0; j < shown.cols; j++) {
      const t = shown.fraction(shown.values[i * shown.cols + j]);
      if (!(t >= 0.02)) continue;
      const faded = (chosen >= 0 && i !== chosen) || (chosenKey >= 0 && j !== chosenKey);
      lines.push([faded ? t * 0.06 : t, i, j]);
    }
  }
  lines.sort((a, b) => b[0] - a[0]);
  lines.length = Math.min(lines.length, 6000);
  for (const [t, i, j] of lines.reverse()) {
    painter.curve(left, y(i), right, y(j), look.line, labelled ? 0.8 + 2.2 * t : 1, Math.max(0.01, t ** 0.8), bend);
  }
  const name = { size: SMALL, fill: look.muted, bold: true };
  painter.text(left - 8, 12, words.query, { ...name, align: "end" });
  painter.text(right + 8, 12, words.key, name);
  const label = (x, i, entry, align, strong) => painter.text(x, y(i), shorten(entry.label, size, 160), { size, fill: entry.special ? look.muted : look.ink, align, bold: strong });
  const every = Math.ceil(60 / step);
  const count = (x, i, align) => i % every === 0 && painter.text(x, y(i), String(i), { size: SMALL, fill: look.muted, align });
  shown.queries.forEach((entry, i) => (labelled ? label(left - 8, i, entry, "end", i === chosen) : count(left - 8, i, "end")));
  shown.keys.forEach((entry, j) => (labelled ? label(right + 8, j, entry, "start", j === chosenKey) : count(right + 8, j, "start")));
}

// The query at the left of the middle, the key at the right of it.
function tokenAt({ shown }, { left, right, top, step }, px, py) {
  const k = Math.floor((py - top) / step);
  if (px <= (left + right) / 2) return k >= 0 && k < shown.rows ? { i: k, j: -1 } : null;
  return k >= 0 && k < shown.cols ? { i: -1, j: k } : null;
}
