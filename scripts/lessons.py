#!/usr/bin/env python3
"""Renews or checks what the program has computed in the lessons.

A lesson names, in a comment, the command behind every block and picture:

    <!-- run: foveal lab by-hand | section "1. Scores" -->
    ```text
    …                                        what that part of the command's output is
    ```
    <!-- code: crates/foveal/examples/first.rs | from "let attention" to "map(" -->
    ```rust
    …                                        these lines of a file that the tests compile and run
    ```
    <!-- picture: foveal lab causal -o causal.svg -->
    ![…](../pictures/causal.en.svg)          written by that command; the language is part of its name

After `|`: `section "TEXT"` takes the lines from the one that begins with TEXT to the next empty one; `from "A" to "B"` from the
first line that holds A to the next that holds B; `lines N` at most so many; `measured` says that times are shown, which no
two runs share: blocks are renewed and not compared, pictures are kept once they are there.

Commands run in a folder of their own, with the files of lessons/files in it.

Usage: lessons.py renew | check        with FOVEAL the program (default: target/release/foveal, then target/debug/foveal)

`check` compares words exactly and numbers to one in their last digit, and also fails where
- a decimal number in the prose stands in no computed block of its lesson. `<!-- numbers: 0.1 3.14 -->` lists those that are no results;
- a link leads nowhere, or the two languages do not have the same chapters and headings.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LESSONS = ROOT / "lessons"
LANGUAGES = ("en", "ko")
BLOCK = re.compile(r"<!-- (run|code): (.+?) -->\n```(\w*)\n(.*?)```\n", re.DOTALL)
PICTURE = re.compile(r"<!-- picture: (.+?) -->\n!\[([^\]]*)\]\(([^)]+)\)")
NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[-−]?\d+)?")
DECIMAL = re.compile(r"\d+\.\d+")
COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")


class Failure(Exception):
    """What is wrong with a lesson, for people."""


def program():
    names = [os.environ.get("FOVEAL"), "target/release/foveal", "target/debug/foveal"]
    for name in filter(None, names):
        path = ROOT / name
        if path.exists():
            return str(path)
    raise Failure("there is no program yet: cargo build --release -p foveal-cli")


def run(arguments, language, folder):
    """What a command prints, without colours and at a width that fits a page."""
    if arguments[:1] != ["foveal"]:
        raise Failure(f"a lesson runs foveal, not {arguments[0]!r}")
    shutil.copytree(LESSONS / "files", folder, dirs_exist_ok=True)
    command = [program(), *arguments[1:], "--lang", language, "--width", "88"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env={**os.environ, "NO_COLOR": "1"})
    if done.returncode:
        raise Failure(f"{shlex.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def cut(text, options, what):
    """The part of an output that the options after `|` ask for."""
    lines = text.rstrip().split("\n")
    words = iter(shlex.split(options))
    for word in words:
        if word == "section":
            start = next(words)
            first = next((n for n, line in enumerate(lines) if line.strip().startswith(start)), None)
            if first is None:
                raise Failure(f"{what}: no line begins with {start!r}")
            end = next((n for n in range(first + 1, len(lines)) if not lines[n].strip()), len(lines))
            lines = lines[first:end]
        elif word == "from":
            start = next(words)
            first = next((n for n, line in enumerate(lines) if start in line), None)
            if first is None:
                raise Failure(f"{what}: no line holds {start!r}")
            lines = lines[first:]
        elif word == "to":
            stop = next(words)
            last = next((n for n, line in enumerate(lines) if stop in line), None)
            if last is None:
                raise Failure(f"{what}: no line holds {stop!r}")
            lines = lines[: last + 1]
        elif word == "lines":
            lines = lines[: int(next(words))]
        elif word != "measured":
            raise Failure(f"{what}: {word!r} is no option")
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:].rstrip() for line in lines).strip("\n")


def computed(kind, head, language):
    """What a block should hold, and whether it can be compared."""
    head, _, options = head.partition(" | ")
    if kind == "code":
        return cut((ROOT / head).read_text(), options, head), True
    with tempfile.TemporaryDirectory() as folder:
        return cut(run(shlex.split(head), language, folder), options, head), "measured" not in shlex.split(options)


def value(number):
    return float(number.replace(",", "").replace("−", "-"))


def alike(old, new):
    """Whether two texts have the same words, and numbers that differ by at most one in the last digit."""
    # A colour follows from its number, which is compared where it is written.
    old, new = COLOUR.sub("#", old), COLOUR.sub("#", new)
    if NUMBER.sub("#", old).split() != NUMBER.sub("#", new).split():
        return False
    for a, b in zip(NUMBER.findall(old), NUMBER.findall(new)):
        mantissa, _, exponent = b.replace("−", "-").partition("e")
        digits = len(mantissa.partition(".")[2])
        last = 10.0 ** (int(exponent or 0) - digits)
        if abs(value(a) - value(b)) > 1.001 * last:
            return False
    return True


def renewed(path, language):
    """The text of a lesson with everything computed anew, its pictures, and what has changed."""
    text, changed, pictures = path.read_text(), [], {}

    def block(found):
        kind, head, info, old = found.groups()
        new, compared = computed(kind, head, language)
        if compared and not alike(old, new):
            changed.append(f"{path.relative_to(ROOT)}: the block of `{head}` shows\n{old.strip()}\n  and should show\n{new}")
            old = new
        elif not compared:
            old = new
        return f"<!-- {kind}: {head} -->\n```{info}\n{old.strip(chr(10))}\n```\n"

    def picture(found):
        command, alt, link = found.groups()
        command, _, options = command.partition(" | ")
        arguments = shlex.split(command)
        if "-o" not in arguments:
            raise Failure(f"{path.name}: {command} writes no picture: -o NAME.svg")
        name = Path(arguments[arguments.index("-o") + 1])
        target = LESSONS / "pictures" / f"{name.stem}.{language}{name.suffix}"
        if link != f"../pictures/{target.name}":
            raise Failure(f"{path.name}: {command} is shown as {link}; its picture is ../pictures/{target.name}")
        with tempfile.TemporaryDirectory() as folder:
            run(arguments, language, folder)
            new = (Path(folder) / name).read_text()
        old = target.read_text() if target.exists() else ""
        if options != "measured" and not alike(old, new) or not old:
            changed.append(f"{target.relative_to(ROOT)} is not what `{command}` draws")
            pictures[target] = new
        return found.group(0)

    text = BLOCK.sub(block, text)
    PICTURE.sub(picture, text)
    return text, pictures, changed


def prose_numbers(path):
    """Decimal numbers in the prose that no computed block of the lesson has."""
    text = path.read_text()
    known = set(DECIMAL.findall(" ".join(found.group(4) for found in BLOCK.finditer(text))))
    for listed in re.findall(r"<!-- numbers: (.+?) -->", text):
        known.update(DECIMAL.findall(listed))
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    prose = re.sub(r"<!--.*?-->|\]\([^)]*\)|`[^`]*`", "", prose, flags=re.DOTALL)
    wrong = []
    for number in DECIMAL.findall(prose):
        places = len(number.partition(".")[2])
        if not any(len(k.partition(".")[2]) >= places and abs(float(k) - float(number)) <= 0.5000001 * 10.0**-places for k in known):
            wrong.append(f"{path.relative_to(ROOT)}: {number} stands in no computed block of this lesson")
    return wrong


def broken_links(path):
    """Links and pictures that lead nowhere."""
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        target, _, _ = link.partition("#")
        if "://" not in link and target and not (path.parent / target).exists():
            wrong.append(f"{path.relative_to(ROOT)}: {link} leads nowhere")
    return wrong


def headings(path):
    """How a lesson is divided: levels of its headings, and their addresses."""
    return re.findall(r"^(#+) .*?(?:\{#([\w-]+)\})?$", re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL), re.MULTILINE)


def alike_languages():
    """Chapters or headings that one language has and another lacks."""
    wrong = []
    names = {language: {path.name for path in (LESSONS / language).glob("*.md")} for language in LANGUAGES}
    for name in sorted(set.union(*names.values())):
        missing = [language for language in LANGUAGES if name not in names[language]]
        if missing:
            wrong.append(f"lessons/{missing[0]}/{name} is missing")
        elif len({str(headings(LESSONS / language / name)) for language in LANGUAGES}) > 1:
            wrong.append(f"{name}: the two languages do not have the same headings")
    return wrong


def main(arguments):
    if arguments not in (["renew"], ["check"]):
        raise Failure(__doc__)
    paths = [(path, language) for language in LANGUAGES for path in sorted((LESSONS / language).glob("*.md"))]
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda job: renewed(*job), paths))
    wrong = [change for _, _, changed in results for change in changed]
    if arguments == ["renew"]:
        (LESSONS / "pictures").mkdir(exist_ok=True)
        for (path, _), (text, pictures, _) in zip(paths, results):
            for target, picture in [*pictures.items(), (path, text)]:
                if not target.exists() or target.read_text() != picture:
                    target.write_text(picture)
        print(f"{len(paths)} lessons, {len(wrong)} renewed")
        wrong = []
    for path, _ in paths:
        wrong += prose_numbers(path) + broken_links(path)
    wrong += alike_languages()
    if wrong:
        raise Failure("\n".join(wrong))
    print(f"{len(paths)} passed, 0 failed")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Failure as failure:
        sys.exit(str(failure))
