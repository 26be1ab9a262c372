// One set of shapes, drawn on a canvas or written as SVG: what is saved is what is seen.

const FONT = 'Pretendard, system-ui, -apple-system, "Segoe UI", "Noto Sans KR", "Apple SD Gothic Neo", "Malgun Gothic", sans-serif';
const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));

/** @typedef {{size?: number, fill: string, align?: string, turn?: number, bold?: boolean}} TextStyle */

/** @param {string} text @param {number} size */
export function measure(text, size) {
  ruler.font = `${size}px ${FONT}`;
  return ruler.measureText(text).width;
}

/** @param {string} text @param {number} size @param {number} limit */
export function shorten(text, size, limit) {
  if (measure(text, size) <= limit) return text;
  const letters = [...text];
  while (letters.length && measure(letters.join("") + "…", size) > limit) letters.pop();
  return letters.join("") + "…";
}

export class CanvasPainter {
  /** @param {CanvasRenderingContext2D} context */
  constructor(context) {
    this.context = context;
    this.vector = false;
  }
  /** @param {number} x @param {number} y @param {number} w @param {number} h @param {string} fill @param {number} [opacity] */
  rect(x, y, w, h, fill, opacity = 1) {
    this.context.globalAlpha = opacity;
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, w, h);
    this.context.globalAlpha = 1;
  }
  /** @param {number} x @param {number} y @param {number} w @param {number} h @param {string} stroke @param {number} [width] */
  frame(x, y, w, h, stroke, width = 1) {
    this.context.strokeStyle = stroke;
    this.context.lineWidth = width;
    this.context.strokeRect(x, y, w, h);
  }
  /** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} stroke @param {number} [width] */
  line(x1, y1, x2, y2, stroke, width = 1) {
    this.curve(x1, y1, x2, y2, stroke, width, 1, 0);
  }
  // From left to right, leaving and arriving level.
  /** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} stroke @param {number} width @param {number} opacity @param {number} bend */
  curve(x1, y1, x2, y2, stroke, width, opacity, bend) {
    const c = this.context;
    c.globalAlpha = opacity;
    c.strokeStyle = stroke;
    c.lineWidth = width;
    c.beginPath();
    c.moveTo(x1, y1);
    c.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
    c.stroke();
    c.globalAlpha = 1;
  }
  /** @param {number} x @param {number} y @param {string} text @param {TextStyle} style */
  text(x, y, text, { size = 13, fill, align = "start", turn = 0, bold = false }) {
    const c = this.context;
    c.save();
    c.translate(x, y);
    c.rotate((turn * Math.PI) / 180);
    c.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
    c.fillStyle = fill;
    c.textAlign = align === "middle" ? "center" : /** @type {CanvasTextAlign} */ (align);
    c.fillText(text, 0, size * 0.355);
    c.restore();
  }
  /** @param {HTMLCanvasElement} source @param {number} sx @param {number} sy @param {number} sw @param {number} sh @param {number} x @param {number} y @param {number} w @param {number} h */
  image(source, sx, sy, sw, sh, x, y, w, h) {
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(source, sx, sy, sw, sh, x, y, w, h);
  }
  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  clip(x, y, w, h) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, w, h);
    this.context.clip();
  }
  unclip() {
    this.context.restore();
  }
}

const escapeXml = (/** @type {string} */ text) => text.replace(/[&<>"]/g, (c) => (/** @type {Record<string, string>} */ ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }))[c]);
const short = (/** @type {number} */ value) => String(Math.round(value * 100) / 100);

export class SvgPainter {
  constructor() {
    this.vector = true;
    /** @type {string[]} */
    this.parts = [];
    this.shifted = 0;
    this.clips = 0;
  }
  /** @param {string} name @param {Record<string, string | number | undefined>} attributes @param {string} [body] */
  put(name, attributes, body) {
    const text = Object.entries(attributes).filter(([, v]) => v !== undefined)
      .map(([k, v]) => ` ${k}="${typeof v === "number" ? short(v) : escapeXml(v ?? "")}"`).join("");
    this.parts.push(body === undefined ? `<${name}${text}/>` : `<${name}${text}>${body}</${name}>`);
  }
  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {string} fill @param {number} [opacity] */
  rect(x, y, width, height, fill, opacity = 1) {
    this.put("rect", { x, y, width, height, fill, opacity: opacity < 1 ? opacity : undefined });
  }
  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {string} stroke @param {number} [w] */
  frame(x, y, width, height, stroke, w = 1) {
    this.put("rect", { x, y, width, height, fill: "none", stroke, "stroke-width": w });
  }
  /** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} stroke @param {number} [width] */
  line(x1, y1, x2, y2, stroke, width = 1) {
    this.put("path", { d: `M${short(x1)} ${short(y1)}L${short(x2)} ${short(y2)}`, stroke, "stroke-width": width });
  }
  /** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} stroke @param {number} width @param {number} opacity @param {number} bend */
  curve(x1, y1, x2, y2, stroke, width, opacity, bend) {
    const d = `M${short(x1)} ${short(y1)}C${short(x1 + bend)} ${short(y1)} ${short(x2 - bend)} ${short(y2)} ${short(x2)} ${short(y2)}`;
    this.put("path", { d, fill: "none", stroke, "stroke-width": width, opacity });
  }
  /** @param {number} x @param {number} y @param {string} text @param {TextStyle} style */
  text(x, y, text, { size = 13, fill, align = "start", turn = 0, bold = false }) {
    const transform = `translate(${short(x)} ${short(y)})${turn ? ` rotate(${turn})` : ""}`;
    const anchor = align === "start" ? undefined : align;
    this.put("text", { transform, y: size * 0.355, "font-size": size, fill, "text-anchor": anchor, "font-weight": bold ? "600" : undefined }, escapeXml(text));
  }
  /** @param {HTMLCanvasElement} source @param {number} sx @param {number} sy @param {number} sw @param {number} sh @param {number} x @param {number} y @param {number} width @param {number} height */
  image(source, sx, sy, sw, sh, x, y, width, height) {
    const [left, top] = [Math.floor(sx), Math.floor(sy)];
    const part = document.createElement("canvas");
    part.width = Math.max(1, Math.ceil(sx + sw) - left);
    part.height = Math.max(1, Math.ceil(sy + sh) - top);
    /** @type {CanvasRenderingContext2D} */ (part.getContext("2d")).drawImage(source, -left, -top);
    const [ux, uy] = [width / sw, height / sh];
    this.put("image", {
      x: x - (sx - left) * ux, y: y - (sy - top) * uy, width: part.width * ux, height: part.height * uy,
      preserveAspectRatio: "none", style: "image-rendering:pixelated", href: part.toDataURL("image/png"),
    });
  }
  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  clip(x, y, width, height) {
    const id = `clip${this.clips++}`;
    this.parts.push(`<clipPath id="${id}"><rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"/></clipPath><g clip-path="url(#${id})">`);
  }
  unclip() {
    this.parts.push("</g>");
  }
  // Everything that follows is moved.
  /** @param {number} x @param {number} y */
  shift(x, y) {
    this.parts.push(`<g transform="translate(${short(x)} ${short(y)})">`);
    this.shifted++;
  }
  /** @param {number} width @param {number} height @param {string} paper */
  finish(width, height, paper) {
    this.parts.push("</g>".repeat(this.shifted));
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${short(width)}" height="${short(height)}" viewBox="0 0 ${short(width)} ${short(height)}" font-family='${FONT}'>\n` +
      `<rect width="100%" height="100%" fill="${paper}"/>\n${this.parts.join("\n")}\n</svg>\n`;
  }
}
