// The matrix as a map: a part of it at any zoom, labels where there is room for them.

const SMALL = 11.5;

// The matrix as a picture, one pixel for each weight.
function picture(shown, look) {
  const canvas = document.createElement("canvas");
  canvas.width = shown.cols;
  canvas.height = shown.rows;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(shown.cols, shown.rows);
  for (let k = 0; k < shown.values.length; k++) {
    const value = shown.values[k];
    const odd = (Math.floor(k / shown.cols) + k) % 2;
    const rgb = Number.isNaN(value) ? look.nan[odd] : look.colours[Math.min(255, Math.round(shown.fraction(value) * 255))];
    pixels.data.set(rgb, k * 4);
    pixels.data[k * 4 + 3] = 255;
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

// Where everything is, for a stage of this width. `part`: the rows and columns in sight, in fractions of tokens.
function mapLayout(shown, part, width, tallest) {
  const longest = (list) => list.reduce((max, entry) => Math.max(max, 1.1 * measure(entry.label, 13)), 0);
  const rowLabels = Math.min(130, Math.max(36, longest(shown.queries)));
  const left = 26 + rowLabels + 8, right = 74;
  const room = Math.max(80, width - left - right);
  const high = part.bottom - part.top, wide = part.right - part.left;
  let cell = Math.min(room / wide, 60);
  if (cell * high > tallest) cell = Math.max(tallest / high, Math.min(cell, 1));
  const heads = Math.min(130, longest(shown.keys));
  const labelled = cell >= 9;
  const size = Math.min(13, cell * 0.86);
  const level = labelled && (heads * size) / 13 <= cell - 6;
  const above = !labelled ? 22 : level ? 24 : cell >= 17 ? (heads * size) / 13 * 0.7072 + 18 : (heads * size) / 13 + 12;
  const top = 22 + above;
  return { left, top, cell, size, labelled, level, width: cell * wide, height: cell * high, total: { width, height: top + cell * high, content: left + cell * wide + right } };
}

function drawMap(painter, scene, at) {
  const { shown, part, look, words, hover, pinnedRow } = scene;
  const { left, top, cell, width, height } = at;
  const x = (j) => left + (j - part.left) * cell, y = (i) => top + (i - part.top) * cell;
  const rows = [Math.floor(part.top), Math.min(shown.rows, Math.ceil(part.bottom))];
  const cols = [Math.floor(part.left), Math.min(shown.cols, Math.ceil(part.right))];
  painter.clip(left, top, width, height);
  if (painter.vector && (rows[1] - rows[0]) * (cols[1] - cols[0]) <= 2500) {
    for (let i = rows[0]; i < rows[1]; i++) {
      for (let j = cols[0]; j < cols[1]; j++) {
        const value = shown.values[i * shown.cols + j];
        if (value !== 0) painter.rect(x(j), y(i), cell, cell, look.css(shown.fraction(value)));
      }
    }
  } else {
    painter.image(scene.picture, part.left, part.top, part.right - part.left, part.bottom - part.top, left, top, width, height);
  }
  if (cell >= 12) {
    for (let i = rows[0] + 1; i < rows[1]; i++) painter.line(left, y(i), left + width, y(i), look.paper);
    for (let j = cols[0] + 1; j < cols[1]; j++) painter.line(x(j), top, x(j), top + height, look.paper);
  }
  if (cell >= 26) drawNumbers(painter, scene, at, rows, cols);
  if (hover && !painter.vector) {
    painter.frame(left - 1, y(hover.i), width + 2, cell, look.muted);
    painter.frame(x(hover.j), top - 1, cell, height + 2, look.muted);
  }
  painter.unclip();
  if (pinnedRow >= rows[0] && pinnedRow < rows[1]) {
    const [from, to] = [Math.max(y(pinnedRow), top), Math.min(y(pinnedRow + 1), top + height)];
    painter.frame(left - 1, from - 0.5, width + 2, Math.max(2, to - from), look.mark, 2);
  }
  painter.frame(left - 0.5, top - 0.5, width + 1, height + 1, look.rule);
  const name = { size: SMALL, fill: look.muted, bold: true, align: "middle" };
  painter.text(left + width / 2, 10, words.key, name);
  painter.text(10, top + height / 2, words.query, { ...name, turn: -90 });
  if (at.labelled) drawLabels(painter, scene, at, rows, cols);
  else drawCounts(painter, scene, at);
  drawBar(painter, scene, at);
}

function drawNumbers(painter, { shown, part, look }, { left, top, cell }, rows, cols) {
  const size = cell >= 48 ? 13 : cell >= 36 ? 11.5 : 9;
  for (let i = rows[0]; i < rows[1]; i++) {
    for (let j = cols[0]; j < cols[1]; j++) {
      const value = shown.values[i * shown.cols + j];
      if (!(value > 0)) continue;
      const full = value.toFixed(value >= 10 ? 0 : cell >= 44 && shown.max < 0.3 ? 3 : 2);
      const text = cell < 36 ? (full === "1.00" ? "1" : full === "0.00" ? "0" : full.replace(/^0/, "")) : full;
      // Weights near 0 are many; they recede.
      const t = shown.fraction(value), fill = t < 0.04 ? look.muted : look.inkOn(t);
      painter.text(left + (j + 0.5 - part.left) * cell, top + (i + 0.5 - part.top) * cell, text, { size, fill, align: "middle" });
    }
  }
}

function drawLabels(painter, { shown, part, look, hover, pinnedRow }, { left, top, cell, size, level }, rows, cols) {
  const ink = (chosen, special) => ({ size, fill: special ? look.muted : look.ink, bold: chosen });
  for (let i = rows[0]; i < rows[1]; i++) {
    const at = top + (i + 0.5 - part.top) * cell, entry = shown.queries[i];
    if (at < top || at > top + (part.bottom - part.top) * cell) continue;
    painter.text(left - 8, at, shorten(entry.label, size, 130), { ...ink(i === hover?.i || i === pinnedRow, entry.special), align: "end" });
  }
  for (let j = cols[0]; j < cols[1]; j++) {
    const at = left + (j + 0.5 - part.left) * cell, entry = shown.keys[j];
    if (at < left || at > left + (part.right - part.left) * cell) continue;
    const turn = level ? 0 : cell >= 17 ? -45 : -90;
    painter.text(at, top - (level ? 14 : 8), shorten(entry.label, size, 130), { ...ink(j === hover?.j, entry.special), turn, align: level ? "middle" : "start" });
  }
}

// Round numbers of tokens where labels have no room.
function drawCounts(painter, { part, look }, { left, top, cell }) {
  const step = (span, length) => {
    const rough = (span * 80) / length, power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
    return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  };
  const mark = { size: SMALL, fill: look.muted };
  const down = step(part.bottom - part.top, (part.bottom - part.top) * cell);
  for (let i = Math.ceil(part.top / down) * down; i < part.bottom; i += down) {
    painter.line(left - 4, top + (i - part.top) * cell, left, top + (i - part.top) * cell, look.muted);
    painter.text(left - 8, top + (i - part.top) * cell, String(i), { ...mark, align: "end" });
  }
  const across = step(part.right - part.left, (part.right - part.left) * cell);
  for (let j = Math.ceil(part.left / across) * across; j < part.right; j += across) {
    painter.line(left + (j - part.left) * cell, top - 4, left + (j - part.left) * cell, top, look.muted);
    painter.text(left + (j - part.left) * cell, top - 12, String(j), { ...mark, align: "middle" });
  }
}

function drawBar(painter, { shown, look }, { left, top, width, height }) {
  const x = left + width + 18, tall = Math.min(Math.max(height, 90), 300), steps = 64;
  for (let k = 0; k < steps; k++) {
    painter.rect(x, top + (k * tall) / steps, 12, tall / steps + 0.5, look.css(1 - (k + 0.5) / steps));
  }
  painter.frame(x, top, 12, tall, look.rule);
  for (const t of [0, 0.5, 1]) {
    const value = shown.max * shown.scale.from(t);
    const text = value === 0 ? "0" : value >= 0.001 ? Number(value.toPrecision(2)).toString() : value.toExponential(0);
    painter.text(x + 18, top + tall * (1 - t) + (t === 0 ? -5 : t === 1 ? 5 : 0), text, { size: SMALL, fill: look.muted });
  }
}

// The cell under a point, or nothing.
function cellAt({ shown, part }, { left, top, cell, width, height }, px, py) {
  if (py < top || py >= top + height || px >= left + width) return null;
  const i = Math.floor(part.top + (py - top) / cell), j = Math.floor(part.left + (px - left) / cell);
  return i >= 0 && i < shown.rows && j < shown.cols ? { i, j: px < left ? -1 : j } : null;
}
