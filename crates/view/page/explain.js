// A sentence for every term on the page, on hover or focus, with a link to its lesson; and the tour of the first visit.

import { say, term } from "./messages.js";

/** @type {number | undefined} */
let timer;

/**
 * Marks a node as the name of a term.
 * @param {HTMLElement} node
 * @param {string} name
 */
export function explain(node, name) {
  if (node.dataset.term === name || !term(name)) return;
  node.dataset.term = name;
  node.classList.add("term");
  const show = () => showTerm(node, name);
  node.addEventListener("pointerenter", () => (timer = setTimeout(show, 350)));
  node.addEventListener("pointerleave", () => hideSoon());
  node.addEventListener("focusin", show);
  node.addEventListener("focusout", () => hideSoon());
}

function hideSoon() {
  clearTimeout(timer);
  timer = setTimeout(hideTerm, 260);
}

export function hideTerm() {
  const box = /** @type {HTMLElement} */ (document.getElementById("term"));
  if (!box.matches(":hover, :focus-within")) box.hidden = true;
}

/** @param {HTMLElement} node @param {string} name */
function showTerm(node, name) {
  const found = term(name), box = /** @type {HTMLElement} */ (document.getElementById("term"));
  if (!found) return;
  clearTimeout(timer);
  const text = document.createElement("span"), link = document.createElement("a");
  text.textContent = found.text;
  link.href = found.lesson;
  link.target = "_blank";
  link.rel = "noopener";
  link.textContent = `${say("lesson")} →`;
  box.replaceChildren(text, link);
  box.hidden = false;
  const at = node.getBoundingClientRect();
  box.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${at.bottom + 6 + box.offsetHeight > window.innerHeight ? at.top - box.offsetHeight - 6 : at.bottom + 6}px`;
  box.onpointerleave = () => hideSoon();
}

/** What each step of the tour points at. */
const STEPS = ["canvas", "zoom", "overview-section", "text-section", "tools"];

/** Begins the tour, or goes on to step `at`. */
export function tour(at = 0) {
  const box = /** @type {HTMLElement} */ (document.getElementById("tour"));
  document.querySelectorAll(".pointed").forEach((node) => node.classList.remove("pointed"));
  if (at >= STEPS.length) {
    box.hidden = true;
    remember();
    return;
  }
  const target = document.getElementById(STEPS[at]), visible = target && target.offsetParent !== null;
  if (visible) target.classList.add("pointed");
  const text = document.createElement("p"), row = document.createElement("div"), count = document.createElement("span");
  const skip = document.createElement("button"), next = document.createElement("button");
  text.textContent = say(`tour_${at + 1}`);
  count.textContent = `${at + 1} / ${STEPS.length}`;
  skip.textContent = say("tour_skip");
  next.textContent = say(at + 1 < STEPS.length ? "tour_next" : "tour_done");
  next.className = "primary";
  skip.onclick = () => tour(STEPS.length);
  next.onclick = () => tour(at + 1);
  row.append(count, skip, next);
  box.replaceChildren(text, row);
  box.hidden = false;
  next.focus();
}

/** Whether this visitor has seen the tour. A page that may not remember does not insist. */
export function isFirstVisit() {
  try {
    return localStorage.getItem("foveal-tour") === null;
  } catch {
    return false;
  }
}

function remember() {
  try {
    localStorage.setItem("foveal-tour", "seen");
  } catch {
    // Nothing to remember it with.
  }
}
