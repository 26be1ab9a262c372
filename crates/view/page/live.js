// What only a source with a model can do: read a text, go on writing, switch heads off.

import { $ } from "./dom.js";
import { number } from "./look.js";
import { say } from "./messages.js";

/** @typedef {import("./app.js").App} App */

/** @param {App} app */
export function live(app) {
  const { can } = app.meta;
  $("live").hidden = !can.includes("run");
  $("model").replaceChildren(...app.meta.models.map((model) => new Option(model.name, model.id)));
  const model = () => app.meta.models.find((other) => other.id === $("model").value);
  // The choice begins with the model that has read what is shown.
  let shown = "";
  app.listeners.push(() => {
    if (shown === app.run.id) return;
    shown = app.run.id;
    const of = app.meta.models.find((other) => other.name === app.run.model);
    if (of) $("model").value = of.id;
  });
  /** @type {AbortController | null} */
  let working = null;
  /** @type {string | null} */
  let image = null;

  /** Does long work that shows its progress and can be stopped. @param {(signal: AbortSignal) => Promise<void>} task */
  const work = async (task) => {
    working?.abort();
    working = new AbortController();
    const { signal } = working;
    $("stop").hidden = $("progress").hidden = false;
    $("progress").removeAttribute("value");
    $("message").hidden = true;
    try {
      await task(signal);
    } catch (error) {
      app.fail(error);
    }
    if (working?.signal === signal) $("stop").hidden = $("progress").hidden = true;
  };
  const onPart = (/** @type {import("./source.js").Reply} */ { head }) => {
    if (head.progress !== undefined) $("progress").value = head.progress;
  };
  const show = (/** @type {import("./source.js").Run} */ run) => {
    app.runs = [run, ...app.runs.filter((other) => other.id !== run.id)];
    app.state.off = run.off ?? [];
    app.openRun({ run: run.id });
    app.change({});
  };
  const read = () => work(async (signal) => {
    const request = { kind: /** @type {const} */ ("run"), model: $("model").value, text: $("input").value };
    const extra = { ...(image ? { image } : {}), ...($("passages").hidden ? {} : { passages: $("passages").value }) };
    const { head } = await app.source.ask({ ...request, ...extra }, { signal, onPart });
    image = null;
    show(head);
  });
  const generate = () => work(async (signal) => {
    $("written").textContent = app.run.text;
    $("written").hidden = false;
    const request = { kind: /** @type {const} */ ("generate"), run: app.run.id, count: 40, temperature: 0, seed: 1, off: app.state.off };
    const { head } = await app.source.ask(request, { signal, onPart: ({ head: part }) => ($("written").textContent += part.text ?? part.label ?? "") });
    show(head);
  });
  $("read").addEventListener("click", read);
  $("generate").addEventListener("click", generate);
  $("stop").addEventListener("click", () => {
    working?.abort();
    $("stop").hidden = $("progress").hidden = true;
  });
  $("input").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) read();
  });
  drop($("live"), (data) => {
    image = data;
    read();
  });
  const say_ = () => {
    $("input").placeholder = say("type_text") + (model()?.reads.includes("image") ? ` — ${say("drop_image")}` : "");
    $("passages").placeholder = say("type_passages");
    $("passages").hidden = !model()?.reads.includes("question");
    $("generate").hidden = !can.includes("generate") || !app.run?.next.length;
    if (app.run?.written && working === null) {
      $("written").textContent = app.run.written;
      $("written").hidden = false;
    }
    passages(app.run);
    predictions(app);
  };
  $("model").addEventListener("change", say_);
  app.listeners.push(say_);
  $("switch").addEventListener("click", () => switchHead(app));
}

/** Which passages an answer looked at, as bars. @param {import("./source.js").Run} run */
function passages({ passages: read = [] }) {
  $("passages-section").hidden = !read.length;
  const most = Math.max(...read.map(({ weight }) => weight));
  $("passages-read").replaceChildren(...read.map(({ text, weight }) => {
    const item = document.createElement("li"), bar = document.createElement("i"), name = document.createElement("span"), value = document.createElement("b");
    bar.style.width = `${weight * 100}%`;
    name.textContent = name.title = text;
    value.textContent = number(weight, 3);
    item.classList.toggle("best", weight === most);
    item.append(bar, name, value);
    return item;
  }));
}

/** @param {HTMLElement} box @param {(data: string) => void} take */
function drop(box, take) {
  box.addEventListener("dragover", (event) => {
    event.preventDefault();
    box.classList.add("dropping");
  });
  box.addEventListener("dragleave", () => box.classList.remove("dropping"));
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("dropping");
    const file = event.dataTransfer?.files[0], reader = new FileReader();
    reader.onload = () => take(String(reader.result).split(",")[1]);
    if (file) reader.readAsDataURL(file);
  });
}

/** @param {App} app */
const isOff = ({ state, site }) => state.off.some(([kind, layer, head]) => kind === site.kind && layer === state.layer && head === state.head);

/** @param {App} app */
function switchHead(app) {
  const { state, site } = app;
  const others = state.off.filter(([kind, layer, head]) => kind !== site.kind || layer !== state.layer || head !== state.head);
  app.change({ off: isOff(app) ? others : [...others, [site.kind, state.layer, state.head]] });
}

let asked = "";

/** What comes next: as it is, and beside it without the heads that are switched off. @param {App} app */
async function predictions(app) {
  const { state, run, meta } = app, can = meta.can.includes("predict") && run.next.length > 0;
  $("switch").hidden = !can || state.head < 0;
  $("switch").textContent = say(isOff(app) ? "switch_on" : "switch_off");
  $("next-section").hidden = !run.next.length;
  const key = JSON.stringify([run.id, state.off, state.lang]);
  if (key === asked || !run.next.length) return;
  asked = key;
  let base = run.next, changed = run.next;
  if (state.off.length && can) {
    try {
      ({ base, changed } = (await app.source.ask({ kind: "predict", run: run.id, off: state.off })).head);
    } catch (error) {
      app.fail(error);
    }
  }
  if (key !== asked) return;
  const after = state.off.length > 0;
  $("next").replaceChildren(...base.slice(0, 8).map(({ label, p }, k) => {
    const item = document.createElement("li"), bar = document.createElement("i"), name = document.createElement("span"), value = document.createElement("b");
    bar.style.width = `${p * 100}%`;
    name.textContent = label;
    value.textContent = after ? `${number(p, 3)} → ${number(changed[k].p, 3)}` : number(p, 3);
    item.append(bar, name, value);
    if (after) {
      const second = document.createElement("i");
      second.className = "after";
      second.style.width = `${changed[k].p * 100}%`;
      item.append(second);
    }
    return item;
  }));
}
