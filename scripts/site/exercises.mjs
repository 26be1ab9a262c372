// The exercises as a page of the site: made from what `foveal learn --list --json` has computed.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const WORDS = {
  en: {
    title: "Exercises", chapter: "Chapter", hint: "Hint", answer: "Answer", start: "The file to begin with",
    intro: "Forty exercises, in the order of the chapters. Type an answer and press Enter; a wrong one is told why where the mistake is a common one. In the terminal they keep your progress: <code>foveal learn</code>. Programs are checked there alone.",
    code: (name) => `In a terminal: <code>foveal learn ${name}</code>, or <code>foveal learn ${name} --watch</code> to have the file checked whenever you save it.`,
  },
  ko: {
    title: "연습 문제", chapter: "제", hint: "힌트", answer: "답", start: "시작 파일",
    intro: "장의 순서대로 마흔 문제입니다. 답을 쓰고 Enter를 누르십시오. 자주 하는 실수라면 왜 틀렸는지 알려 줍니다. 터미널에서는 <code>foveal learn ko</code>로 진도를 저장하며 풀 수 있습니다. 프로그램 문제는 터미널에서만 확인합니다.",
    code: (name) => `터미널에서 <code>foveal learn ko ${name}</code>을 실행하십시오. <code>--watch</code>를 붙이면 저장할 때마다 확인합니다.`,
  },
};

const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const letter = (n) => "abcdefgh"[n];

/** A table of the program. */
function table({ head, rows, title }, language) {
  const row = (cells, tag) => `<tr>${cells.map((cell) => `<${tag}>${escape(cell[language])}</${tag}>`).join("")}</tr>`;
  const caption = title[language] ? `<caption>${escape(title[language])}</caption>` : "";
  return `<table>${caption}${row(head, "th")}${rows.map((cells) => row(cells, "td")).join("")}</table>`;
}

/** The right answer, for people. */
function answer({ numbers, choice, head }, language) {
  if (numbers) return numbers.values.map((x) => x.toFixed(numbers.decimals).replace("-", "−")).join(" ");
  if (choice) return `${letter(choice.right)}) ${choice.options[choice.right][language]}`;
  return head.right.map(([layer, head]) => `${layer}.${head}`).join(", ");
}

/** What stands on the page of one language; pictures are written into the folder `pictures` of the site. */
export function exercises(all, language, site) {
  const words = WORDS[language], folder = join(site, "lessons/pictures/exercises");
  mkdirSync(folder, { recursive: true });
  let chapter = 0;
  const parts = all.map((exercise) => {
    const { name, expected } = exercise, lines = [];
    if (exercise.chapter !== chapter) {
      chapter = exercise.chapter;
      lines.push(`<h2 id="chapter-${chapter}">${words.chapter} ${chapter}${language === "ko" ? "장" : ""}</h2>`);
    }
    lines.push(`<section class="exercise"><h3 id="${name}">${escape(exercise.title[language])}</h3>`, `<p>${escape(exercise.question[language])}</p>`);
    exercise.sections.forEach((section, n) => {
      if (section.table) lines.push(table(section.table, language));
      if (section.svg) {
        const file = (theme) => `${name}-${n}.${language}.${theme}.svg`;
        for (const theme of ["light", "dark"]) writeFileSync(join(folder, file(theme)), section.svg[theme][language]);
        lines.push(`<picture><source media="(prefers-color-scheme: dark)" srcset="../pictures/exercises/${file("dark")}"><img src="../pictures/exercises/${file("light")}" alt="${escape(exercise.title[language])}"></picture>`);
      }
    });
    if (expected.choice) lines.push(`<noscript><ul>${expected.choice.options.map((option, n) => `<li>${letter(n)}) ${escape(option[language])}</li>`).join("")}</ul></noscript>`);
    if (expected.code) lines.push(`<p>${words.code(name)}</p>`, `<details><summary>${words.start}</summary><pre><code>${escape(expected.code.start[language])}</code></pre></details>`);
    else lines.push(`<div class="try" data-try="exercises" data-exercise="${name}"></div>`);
    exercise.hints.forEach((hint, n) => lines.push(`<details><summary>${words.hint} ${n + 1}</summary>${escape(hint[language])}</details>`));
    if (!expected.code) lines.push(`<details><summary>${words.answer}</summary>${escape(answer(expected, language))}. ${escape(exercise.explanation[language])}</details>`);
    return `${lines.join("\n")}\n</section>`;
  });
  // What the page needs to judge answers.
  const data = Object.fromEntries(all.filter(({ expected }) => !expected.code).map(({ name, expected, mistakes, explanation }) => [name, { name, expected, mistakes, explanation }]));
  const body = `<h1>${words.title}</h1>\n<p>${words.intro}</p>\n${parts.join("\n")}`;
  return { title: words.title, body, data: { exercises: data } };
}
