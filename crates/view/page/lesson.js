// The parts of the lessons that one can try. They stand in the text as <div class="try" data-try="NAME">.

import { drag } from "./lesson_drag.js";
import { exercises } from "./lesson_exercises.js";
import { heads } from "./lesson_heads.js";
import { mask } from "./lesson_mask.js";
import { positions } from "./lesson_positions.js";
import { scale } from "./lesson_scale.js";
import { makeLook } from "./look.js";

/** @type {Record<string, (box: HTMLElement, look: () => import("./look.js").Look) => () => void>} */
const PARTS = { drag, exercises, heads, mask, positions, scale };

const dark = matchMedia("(prefers-color-scheme: dark)");
const look = () => makeLook(dark.matches ? "dark" : "light");

for (const box of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-try]"))) {
  const draw = PARTS[box.dataset.try ?? ""](box, look);
  draw();
  dark.addEventListener("change", draw);
  box.dataset.ready = "yes";
}
