// Pointer and keys.

let drag = null;

const under = (event) => {
  const box = $("canvas").getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

function hover(cell, px, py) {
  scene.hover = cell;
  const tip = $("tip"), { shown } = scene;
  tip.style.display = cell && (cell.i >= 0 || cell.j >= 0) ? "block" : "none";
  if (cell) {
    const names = [cell.i >= 0 ? shown.queries[cell.i].label : null, cell.j >= 0 ? shown.keys[cell.j].label : null];
    const value = document.createElement("b");
    value.textContent = cell.i >= 0 && cell.j >= 0 ? `  ${number(shown.values[cell.i * shown.cols + cell.j])}` : "";
    tip.replaceChildren(names.filter((n) => n !== null).join(" → "), value);
    const stage = $("canvas").clientWidth;
    tip.style.left = `${Math.min(px + 14, stage - tip.offsetWidth - 4)}px`;
    tip.style.top = `${Math.max(0, py - tip.offsetHeight - 10)}px`;
  }
  redraw();
}

function listen() {
  const canvas = $("canvas");
  canvas.addEventListener("pointermove", (event) => {
    if (!scene || !at) return;
    const [px, py] = under(event);
    if (drag && state.view === "map") {
      const dx = (drag.x - px) / at.cell, dy = (drag.y - py) / at.cell;
      if (Math.abs(drag.x - px) + Math.abs(drag.y - py) > 3) drag.moved = true;
      const { part } = drag;
      state.part = within({ left: part.left + dx, right: part.right + dx, top: part.top + dy, bottom: part.bottom + dy }, scene.shown.rows, scene.shown.cols);
    }
    hover(state.view === "map" ? cellAt(scene, at, px, py) : tokenAt(scene, at, px, py), px, py);
  });
  canvas.addEventListener("pointerleave", () => scene && hover(null));
  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = under(event);
    drag = { x, y, part: { ...state.part }, moved: false };
  });
  window.addEventListener("pointerup", () => setTimeout(() => (drag = null)));
  canvas.addEventListener("click", () => {
    if (!scene || drag?.moved) return;
    pinRow(scene.hover ? scene.hover.i : -1);
  });
  canvas.addEventListener("dblclick", () => {
    state.part = whole(scene.shown);
    state.pin = null;
    redraw();
  });
  canvas.addEventListener("wheel", (event) => {
    // The page scrolls as usual where there is nothing to zoom into.
    if (state.view !== "map" || !scene || at.total.width <= 0 || (!event.ctrlKey && Math.max(scene.shown.rows, scene.shown.cols) < 24)) return;
    event.preventDefault();
    zoom(Math.exp(event.deltaY * 0.0015), ...under(event));
  }, { passive: false });
  canvas.addEventListener("keydown", keys);
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("select, input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ",": ["head", -1], ".": ["head", 1], "<": ["layer", -1], ">": ["layer", 1] }[event.key];
    if (step) change({ [step[0]]: state[step[0]] + step[1] }, true);
    if (event.key === "Escape") pinRow(-1);
  });
  for (const id of ["layer", "head"]) {
    $(id).addEventListener("change", () => change({ [id]: Number($(id).value) }, true));
    $(`${id}-less`).addEventListener("click", () => change({ [id]: state[id] - 1 }, true));
    $(`${id}-more`).addEventListener("click", () => change({ [id]: state[id] + 1 }, true));
  }
  for (const id of ["merge", "hide"]) $(id).addEventListener("change", () => change({ [id]: $(id).checked }));
  $("save-svg").addEventListener("click", saveSvg);
  $("save-png").addEventListener("click", savePng);
  $("language").addEventListener("click", () => change({ language: state.language === "ko" ? "en" : "ko" }, true));
  $("theme").addEventListener("click", () => change({ theme: { auto: "light", light: "dark", dark: "auto" }[state.theme] }, true));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => change({}, true));
  window.addEventListener("resize", redraw);
  $("overview").addEventListener("click", (event) => {
    const box = $("overview").getBoundingClientRect();
    const found = headAt(overviewAt, group(), heads(), event.clientX - box.left, event.clientY - box.top);
    if (found) change(state.measure === "rollout" ? { layer: found.layer } : found, true);
  });
  tokens($("text"), () => scene.same);
  tokens($("queries"), () => true);
}

// A strip of tokens: pointing shows, a click or Enter pins, arrows walk.
function tokens(box, isQueries) {
  const index = (event) => (event.target.dataset.index === undefined ? -1 : Number(event.target.dataset.index));
  box.addEventListener("pointerover", (event) => {
    if (!isQueries() || index(event) < 0) return;
    scene.hover = { i: index(event), j: -1 };
    redraw();
  });
  box.addEventListener("pointerleave", () => {
    scene.hover = null;
    redraw();
  });
  box.addEventListener("click", (event) => isQueries() && index(event) >= 0 && pinRow(index(event)));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -10, ArrowDown: 10 }[event.key];
    const next = step && box.children[Math.max(0, Math.min(box.children.length - 1, index(event) + step))];
    if (next) {
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      scene.hover = isQueries() ? { i: Number(next.dataset.index), j: -1 } : null;
      redraw();
    } else if ((event.key === "Enter" || event.key === " ") && isQueries()) {
      pinRow(index(event));
    } else {
      return;
    }
    event.preventDefault();
  });
}

// On the canvas, arrows move the cell that is looked at.
function keys(event) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const cell = scene.hover ?? { i: 0, j: 0 };
  if (step) {
    const i = Math.max(0, Math.min(scene.shown.rows - 1, Math.max(cell.i, 0) + step[0]));
    const j = Math.max(0, Math.min(scene.shown.cols - 1, Math.max(cell.j, 0) + step[1]));
    const [px, py] = state.view === "map" ? [at.left + (j + 0.5 - state.part.left) * at.cell, at.top + (i + 0.5 - state.part.top) * at.cell] : [at.left, at.top + i * at.step];
    hover({ i, j }, px, py);
  } else if (event.key === "Enter" || event.key === " ") {
    pinRow(cell.i);
  } else if (event.key === "+" || event.key === "-") {
    zoom(event.key === "+" ? 0.7 : 1.4, at.left + at.width / 2, at.top + at.height / 2);
  } else {
    return;
  }
  event.preventDefault();
}

listen();
change({});
