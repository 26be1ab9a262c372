// The state of the page, its controls, and drawing what they ask for.

const $ = (id) => document.getElementById(id);
const state = {
  group: 0, layer: 0, head: 0, measure: "weights", scale: DATA.groups.some((g) => Math.max(g.queries.labels.length, g.keys.labels.length) > 64) ? "root" : "linear", view: "map", merge: false, hide: false,
  // The pinned query as a token, so that it survives merging and hiding.
  pin: null, hover: null, part: null, theme: "auto", language: DATA.language,
};
let scene = null, at = null, overviewAt = null, busy = 0, asked = false;

const group = () => DATA.groups[state.group];
const words = () => WORDS[state.language];
const heads = () => (state.measure === "rollout" ? 1 : group().heads);
const whole = (shown) => ({ top: 0, left: 0, bottom: shown.rows, right: shown.cols });

function theme() {
  if (state.theme !== "auto") return state.theme;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

// The colours of the theme, for canvases and files.
function makeLook() {
  const style = getComputedStyle(document.documentElement), name = theme();
  const css = (key) => style.getPropertyValue(key).trim();
  const hex = (text) => [0, 2, 4].map((k) => parseInt(text.slice(k, k + 2), 16));
  const table = DATA.palettes[name];
  const colours = Array.from({ length: 256 }, (_, k) => hex(table.slice(k * 6, k * 6 + 6)));
  const index = (t) => Math.max(0, Math.min(255, Math.round(t * 255)));
  const linear = (c) => (c <= 10 ? c / 3294 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const light = colours.map(([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > 0.179);
  const mark = DATA.palettes[`${name}_mark`];
  document.documentElement.style.setProperty("--mark", mark);
  return {
    paper: css("--paper"), ink: css("--ink"), muted: css("--muted"), rule: css("--rule"), line: css("--accent"), mark, colours,
    nan: [hex(css("--nan-pale").slice(1)), hex(css("--nan-dark").slice(1))],
    css: (t) => (Number.isNaN(t) ? css("--nan-dark") : `#${table.slice(index(t) * 6, index(t) * 6 + 6)}`),
    inkOn: (t) => (light[index(t)] ? "#11141c" : "#ffffff"),
  };
}

// Fetches what the controls ask for and draws it; a newer call overtakes an older one.
async function refresh(keepPart) {
  const turn = ++busy;
  const g = state.group, full = await matrix(g, state.measure, state.layer, state.head);
  const small = await thumbs(g, state.measure);
  if (turn !== busy) return;
  const queries = entries(group().queries, state.merge, state.hide), keys = entries(group().keys, state.merge, state.hide);
  const shown = gathered(full, queries.length ? queries : entries(group().queries, state.merge, false), keys.length ? keys : entries(group().keys, state.merge, false));
  shown.scale = SCALES[state.scale];
  shown.fraction = (value) => shown.scale.to(value / shown.max);
  const look = makeLook();
  const same = JSON.stringify(group().queries.labels) === JSON.stringify(group().keys.labels);
  scene = { shown, look, words: words(), small, same, picture: picture(shown, look), hover: null, pinnedRow: pinnedRow(shown) };
  if (!keepPart || !state.part) state.part = whole(shown);
  scene.part = state.part;
  fillText($("text"), shown.keys);
  $("queries").hidden = same;
  if (!same) fillText($("queries"), shown.queries);
  overviewAt = drawOverview($("overview"), { group: group(), measureName: state.measure, small, look, layer: state.layer, head: state.head });
  $("overview-section").hidden = group().layers * group().heads < 2;
  draw();
  document.body.dataset.ready = String(turn);
}

const pinnedRow = (shown) => (state.pin === null ? -1 : shown.queries.findIndex((entry) => entry.members.includes(state.pin)));

function draw() {
  asked = false;
  if (!scene) return;
  const canvas = $("canvas"), width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  scene.part = state.part;
  scene.pinnedRow = pinnedRow(scene.shown);
  const tallest = Math.max(420, window.innerHeight - 220);
  at = state.view === "map" ? mapLayout(scene.shown, state.part, width, tallest) : linesLayout(scene.shown, width, tallest);
  canvas.style.height = `${at.total.height}px`;
  const [w, h] = [Math.round(at.total.width * ratio), Math.round(at.total.height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, at.total.width, at.total.height);
  paint(new CanvasPainter(context));
  read(scene.pinnedRow >= 0 ? scene.pinnedRow : (scene.hover?.i ?? -1));
}

// The list and the text, only when they would change: there may be hundreds of tokens.
function read(row) {
  const key = `${row} ${scene.pinnedRow}`;
  if (scene.read === key) return;
  scene.read = key;
  drawStrongest($("strongest"), $("reading-title"), scene, row);
  shadeText($("text"), scene, row, scene.pinnedRow >= 0);
  [...$("queries").children].forEach((span, i) => span.classList.toggle("pinned", i === scene.pinnedRow));
}

const paint = (painter) => (state.view === "map" ? drawMap : drawLines)(painter, scene, at);

function redraw() {
  if (!asked) requestAnimationFrame(draw);
  asked = true;
}

function pinRow(row) {
  const token = row < 0 ? null : scene.shown.queries[row].members[0];
  state.pin = token === null || (scene.pinnedRow === row && row >= 0) ? null : token;
  redraw();
}

function segments(id, names, chosen, change) {
  const box = $(id), row = document.createElement("div");
  box.querySelector(".row")?.remove();
  row.className = "row";
  for (const [value, text] of names) {
    const label = document.createElement("label"), input = document.createElement("input"), span = document.createElement("span");
    Object.assign(input, { type: "radio", name: id, value, checked: value === chosen });
    input.addEventListener("change", () => change(value));
    span.textContent = text;
    label.append(input, span);
    row.append(label);
  }
  box.append(row);
}

function fillSelect(id, count, chosen, first) {
  const options = [...(first ? [[-1, first]] : []), ...Array.from({ length: count }, (_, k) => [k, String(k)])];
  $(id).replaceChildren(...options.map(([value, text]) => new Option(text, value, false, value === chosen)));
  $(id).disabled = options.length < 2;
}

// Everything that words, groups and the state decide.
function controls() {
  const w = words();
  document.documentElement.lang = state.language;
  document.querySelectorAll("[data-word]").forEach((node) => (node.textContent = w[node.dataset.word]));
  $("title").textContent = DATA.title || w.kind;
  $("note").textContent = DATA.note;
  $("language").textContent = w.other;
  $("theme").textContent = w[state.theme];
  $("save-svg").title = w.saveSvg;
  $("save-png").title = w.savePng;
  for (const [id, word] of [["layer", w.layer], ["head", w.head]]) {
    $(`${id}-less`).setAttribute("aria-label", `${word}: ${w.less}`);
    $(`${id}-more`).setAttribute("aria-label", `${word}: ${w.more}`);
    $(id).setAttribute("aria-label", word);
  }
  $("canvas").setAttribute("aria-label", `${w.query} × ${w.key}`);
  $("text").setAttribute("aria-label", w.text);
  $("kind").hidden = DATA.groups.length < 2;
  segments("kind", DATA.groups.map((g, k) => [String(k), w[g.kind]]), String(state.group), (value) => change({ group: Number(value), pin: null }));
  segments("measure", group().measures.map((m) => [m, w[m]]), state.measure, (measure) => change({ measure }, true));
  segments("scale", [["linear", w.linear], ["root", w.root], ["log", w.log]], state.scale, (scale) => change({ scale }, true));
  segments("view", [["map", w.map], ["lines", w.lines]], state.view, (view) => change({ view }, true));
  fillSelect("layer", group().layers, state.layer);
  if (heads() > 1) fillSelect("head", heads(), state.head, w.mean);
  else fillSelect("head", 1, 0);
  for (const id of ["layer", "head"]) $(`${id}-less`).disabled = $(`${id}-more`).disabled = $(id).disabled;
  const some = (test) => [group().queries, group().keys].some(test);
  $("merge-label").hidden = !some((tokens) => new Set(tokens.words).size < tokens.words.length);
  $("hide-label").hidden = !some((tokens) => tokens.special.length);
}

// Changes the state, keeping it within what the group has. `keepPart`: the part in sight stays.
function change(to, keepPart) {
  Object.assign(state, to);
  if (!group().measures.includes(state.measure)) state.measure = "weights";
  state.layer = Math.max(0, Math.min(state.layer, group().layers - 1));
  if (state.head >= group().heads) state.head = group().heads - 1;
  if (state.head < -1) state.head = -1;
  document.documentElement.dataset.theme = theme();
  controls();
  return refresh(keepPart);
}

function zoom(factor, px, py) {
  if (state.view !== "map") return;
  const { rows, cols } = scene.shown, part = state.part;
  const across = (part.right - part.left) * factor, down = (part.bottom - part.top) * factor;
  if (factor < 1 && Math.min(across, down) < 4) return;
  const u = Math.max(0, Math.min(1, (px - at.left) / at.width)), v = Math.max(0, Math.min(1, (py - at.top) / at.height));
  const left = part.left + (part.right - part.left) * u - across * u, top = part.top + (part.bottom - part.top) * v - down * v;
  state.part = within({ left, top, right: left + across, bottom: top + down }, rows, cols);
  redraw();
}

function within(part, rows, cols) {
  const wide = Math.min(part.right - part.left, cols), tall = Math.min(part.bottom - part.top, rows);
  const left = Math.max(0, Math.min(part.left, cols - wide)), top = Math.max(0, Math.min(part.top, rows - tall));
  return { left, top, right: left + wide, bottom: top + tall };
}
