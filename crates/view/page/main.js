// The page begins: its source, its first view.

import { App } from "./app.js";
import { $ } from "./dom.js";
import { controls } from "./controls.js";
import { listen } from "./events.js";
import { isFirstVisit, tour } from "./explain.js";
import { live } from "./live.js";
import { say, speak } from "./messages.js";
import { parse, fromAddress } from "./state.js";
import { FileSource } from "./source_file.js";
import { NotebookSource, parentChannel } from "./source_notebook.js";
import { ServerSource } from "./source_server.js";
import { tools } from "./tools.js";

function source() {
  switch (document.documentElement.dataset.source) {
    case "server": return new ServerSource("ask");
    case "notebook": return new NotebookSource(parentChannel());
    default: return new FileSource();
  }
}

async function begin() {
  speak(document.documentElement.lang);
  const from = source(), { head: meta } = await from.ask({ kind: "meta" });
  if (!meta.runs.length && meta.models.length) {
    const { head: run } = await from.ask({ kind: "run", model: meta.models[0].id, text: meta.title || "To be, or not to be" });
    meta.runs.push(run);
  }
  const app = new App(from, meta);
  app.listeners.push(() => controls(app));
  tools(app);
  listen(app);
  live(app);
  app.change({});
  window.addEventListener("hashchange", () => {
    app.openRun(parse(fromAddress()));
    app.change({});
  });
  if (isFirstVisit()) tour();
}

begin().catch((error) => {
  $("message").textContent = say("failed", { message: error.message ?? String(error) });
  $("message").hidden = false;
});
