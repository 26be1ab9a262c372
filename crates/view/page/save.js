// What is in sight as a figure of its own: cut to size, with a margin and a title.

const MARGIN = 24;

function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const headName = () => (state.measure === "rollout" ? "rollout" : state.head < 0 ? "mean" : `head${state.head}`);
const fileName = () => `attention-${group().kind}-layer${state.layer}-${headName()}`;

// The title, and which attention it is.
function captions() {
  const w = words(), parts = [];
  if (DATA.groups.length > 1) parts.push(w[group().kind]);
  if (group().layers > 1) parts.push(`${w.layer} ${state.layer}`);
  if (heads() > 1) parts.push(`${w.head} ${state.head < 0 ? w.mean : state.head}`);
  if (state.measure !== "weights") parts.push(w[state.measure]);
  return [DATA.title, [DATA.note, ...parts].filter(Boolean).join(" · ")];
}

// Paints the figure and returns its size. `shift` moves the origin.
function figure(painter, shift) {
  const [title, note] = captions(), { look } = scene;
  let y = MARGIN;
  if (title) painter.text(MARGIN, (y += 8), title, { size: 18, fill: look.ink, bold: true });
  if (note) painter.text(MARGIN, (y += title ? 22 : 6), note, { size: 13, fill: look.muted });
  if (title || note) y += 22;
  const hover = scene.hover;
  scene.hover = null;
  shift(MARGIN, y);
  paint(painter);
  scene.hover = hover;
  const widest = Math.max(at.total.content, 1.05 * measure(title, 18), measure(note, 13));
  return { width: widest + 2 * MARGIN, height: y + at.total.height + MARGIN };
}

function saveSvg() {
  const painter = new SvgPainter();
  const size = figure(painter, (x, y) => painter.shift(x, y));
  save(`${fileName()}.svg`, new Blob([painter.finish(size.width, size.height, scene.look.paper)], { type: "image/svg+xml" }));
}

function savePng() {
  const ratio = 2, canvas = document.createElement("canvas"), context = canvas.getContext("2d");
  // Once to learn its size, which a canvas must know before it is drawn on.
  const size = figure(new CanvasPainter(context), () => {});
  [canvas.width, canvas.height] = [Math.ceil(size.width * ratio), Math.ceil(size.height * ratio)];
  context.scale(ratio, ratio);
  context.fillStyle = scene.look.paper;
  context.fillRect(0, 0, canvas.width, canvas.height);
  figure(new CanvasPainter(context), (x, y) => context.translate(x, y));
  canvas.toBlob((blob) => save(`${fileName()}.png`, blob), "image/png");
}
