// Makes a site of the lessons: node scripts/site/build.mjs OUT LEARN.json LESSON.js
//
// lessons/<language>/*.md become OUT/lessons/<language>/*.html with formulas rendered. Nothing is fetched when the site is
// read, and it works from a folder without a server. LEARN.json is what `foveal learn --list --json` prints: the exercises, and
// a model with heads switched off. LESSON.js is the page program for the parts that one can try (foveal-view's example lesson).

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { exercises } from "./exercises.mjs";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const LESSONS = join(ROOT, "lessons");
const [out, learn, program] = [process.argv[2] ?? "out/site", process.argv[3] ?? "out/learn.json", process.argv[4] ?? "out/lesson.js"].map((path) => resolve(path));
// The packages lie beside the site, not in the repository.
const require = createRequire(join(resolve(process.env.SITE_MODULES ?? join(ROOT, "out/site-modules")), "x.js"));
const katex = require("katex");
const attributes = require("markdown-it-attrs");
const markdown = require("markdown-it")({ html: true, typographer: false }).use(attributes);

const LANGUAGES = {
  en: { name: "English", other: "ko", switch: "한국어", contents: "Contents", lessons: "Attention in an afternoon" },
  ko: { name: "한국어", other: "en", switch: "English", contents: "차례", lessons: "오후에 배우는 어텐션" },
};

/** Formulas, $$…$$ and $…$, as HTML; code is left alone. */
function formulas(text) {
  // Words of either language may stand in a formula.
  const strict = (code) => (code === "unicodeTextInMathMode" ? "ignore" : "error");
  const render = (displayMode) => (_, tex) => katex.renderToString(tex.trim(), { displayMode, strict });
  const parts = text.split(/(```[\s\S]*?```|`[^`\n]*`)/);
  const rendered = (part) => part.replace(/\$\$([\s\S]+?)\$\$/g, render(true)).replace(/\$([^$\n]+?)\$/g, render(false));
  return parts.map((part, n) => (n % 2 === 1 ? part : rendered(part))).join("");
}

/** The name of a chapter: its first heading, without its address. */
const title = (text) => text.match(/^# (.+?)(?: \{#[\w-]+\})?$/m)[1];
const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const page = (name) => name.replace(/\.md$/, ".html");

/** Data that a page's program finds in its document. */
const embedded = (data) => Object.entries(data).map(([id, value]) => `<script type="application/json" id="${id}">${JSON.stringify(value).replace(/</g, "\\u003c")}</script>\n`).join("");

/** One chapter as a page. */
function html(chapter, chapters, language) {
  const words = LANGUAGES[language];
  const text = chapter.body ? "" : chapter.text.replace(/\]\(((?!https?:)[^)\s]+?)\.md(#[\w-]+)?\)/g, "]($1.html$2)");
  const links = chapters
    .map(({ name, title }) => `<li><a href="${page(name)}"${name === chapter.name ? ' aria-current="page"' : ""}>${escape(title)}</a></li>`)
    .join("\n");
  return `<!doctype html>
<html lang="${language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(chapter.title)} · ${words.lessons}</title>
<link rel="stylesheet" href="../../site/katex/katex.min.css">
<link rel="stylesheet" href="../../site/style.css">
<a class="skip" href="#text">${words.contents} ↓</a>
<header><a href="00-preface.html">${words.lessons}</a><a lang="${words.other}" href="../${words.other}/${page(chapter.name)}">${words.switch}</a></header>
<nav aria-label="${words.contents}"><details open><summary>${words.contents}</summary><ul>
${links}
</ul></details></nav>
<main id="text">
${chapter.body ?? markdown.render(formulas(text))}
</main>
${embedded(chapter.data ?? {})}${/data-try=/.test(chapter.body ?? text) ? '<script src="../../site/lesson.js"></script>' : ""}
</html>
`;
}

rmSync(out, { recursive: true, force: true });
mkdirSync(join(out, "site/katex"), { recursive: true });
cpSync(join(ROOT, "scripts/site/style.css"), join(out, "site/style.css"));
cpSync(program, join(out, "site/lesson.js"));
const learned = JSON.parse(readFileSync(learn, "utf8"));
const dist = dirname(require.resolve("katex"));
// One kind of font is enough; the others named in the style sheet are fallbacks for browsers of the past.
writeFileSync(join(out, "site/katex/katex.min.css"), readFileSync(join(dist, "katex.min.css"), "utf8").replace(/,url\([^)]*\.(woff|ttf)\) format\("[^"]*"\)/g, ""));
cpSync(join(dist, "fonts"), join(out, "site/katex/fonts"), { recursive: true, filter: (path) => !/\.(woff|ttf)$/.test(path) });
cpSync(join(LESSONS, "pictures"), join(out, "lessons/pictures"), { recursive: true });
let count = 0;
for (const language of Object.keys(LANGUAGES)) {
  const folder = join(LESSONS, language);
  const chapters = readdirSync(folder).filter((name) => name.endsWith(".md")).sort().map((name) => {
    const text = readFileSync(join(folder, name), "utf8");
    // The heads that one can switch off there.
    const data = text.includes('data-try="heads"') ? { "switched-off": learned.switched_off } : {};
    return { name, text, title: title(text), data };
  });
  const last = chapters.findIndex(({ name }) => name === "glossary.md");
  chapters.splice(last < 0 ? chapters.length : last, 0, { name: "exercises.md", ...exercises(learned.exercises, language, out) });
  mkdirSync(join(out, "lessons", language), { recursive: true });
  for (const chapter of chapters) {
    writeFileSync(join(out, "lessons", language, page(chapter.name)), html(chapter, chapters, language));
    count += 1;
  }
}
const choose = Object.entries(LANGUAGES).map(([language, { name, lessons }]) => `<li><a lang="${language}" href="lessons/${language}/00-preface.html">${name}: ${lessons}</a></li>`);
writeFileSync(join(out, "index.html"), `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Foveal</title><link rel="stylesheet" href="site/style.css"><main><h1>Foveal</h1><ul>${choose.join("")}</ul></main></html>\n`);
console.log(`${count} pages in ${out}`);
