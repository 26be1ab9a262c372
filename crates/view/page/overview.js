// All layers × heads as small pictures; a click chooses one.

function overviewLayout(layers, heads, small, width) {
  const gutter = 24, gap = 3;
  const side = Math.min(72, (width - gutter) / heads - gap);
  const tall = Math.max(3, (side * small.rows) / Math.max(small.rows, small.cols));
  const wide = Math.max(3, (side * small.cols) / Math.max(small.rows, small.cols));
  return { gutter, gap, side, tall, wide, top: 16, height: 16 + layers * (tall + gap) };
}

function drawOverview(canvas, { group, measureName, small, look, layer, head }) {
  const heads = measureName === "rollout" ? 1 : group.heads;
  const width = canvas.clientWidth || 316, at = overviewLayout(group.layers, heads, small, width);
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${at.height}px`;
  canvas.width = width * ratio;
  canvas.height = at.height * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const painter = new CanvasPainter(context);
  const one = document.createElement("canvas");
  one.width = small.cols;
  one.height = small.rows;
  const oneContext = one.getContext("2d"), pixels = oneContext.createImageData(small.cols, small.rows);
  for (let l = 0; l < group.layers; l++) {
    for (let h = 0; h < heads; h++) {
      const from = (l * heads + h) * small.rows * small.cols;
      for (let k = 0; k < small.rows * small.cols; k++) {
        const code = small.bytes[from + k];
        pixels.data.set(code === 255 ? look.nan[k % 2] : look.colours[Math.min(255, code + 1)], k * 4);
        if (code === 0) pixels.data.set(look.colours[0], k * 4);
        pixels.data[k * 4 + 3] = 255;
      }
      oneContext.putImageData(pixels, 0, 0);
      const x = at.gutter + h * (at.side + at.gap), y = at.top + l * (at.tall + at.gap);
      context.imageSmoothingEnabled = at.wide < small.cols;
      context.drawImage(one, x, y, at.wide, at.tall);
      painter.frame(x + 0.5, y + 0.5, at.wide - 1, at.tall - 1, look.rule);
      if (l === layer && (h === head || head < 0 || heads === 1)) painter.frame(x, y, at.wide, at.tall, look.mark, 2.5);
    }
    painter.text(at.gutter - 6, at.top + l * (at.tall + at.gap) + at.tall / 2, String(l), { size: 10, fill: look.muted, align: "end" });
  }
  if (heads > 1) {
    for (let h = 0; h < heads; h++) painter.text(at.gutter + h * (at.side + at.gap) + at.wide / 2, 7, String(h), { size: 10, fill: look.muted, align: "middle" });
  }
  return at;
}

function headAt(at, group, heads, px, py) {
  const head = Math.floor((px - at.gutter) / (at.side + at.gap)), layer = Math.floor((py - at.top) / (at.tall + at.gap));
  return head >= 0 && head < heads && layer >= 0 && layer < group.layers ? { layer, head } : null;
}
