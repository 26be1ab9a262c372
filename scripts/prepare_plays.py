#!/usr/bin/env python3
"""More plays to learn from than tiny Shakespeare has, in its form, without anything of its held-out tenth.

    python3 scripts/prepare_plays.py        (part of: make model-shakespeare)

Reads what fetch_test_data.py fetched, shakespeare/dataset.txt and plays/*.txt in the cache, and writes
shakespeare/plays.txt beside the first. What is left out:

- plays of which tiny Shakespeare has a good part, so that nothing is learned twice, and nothing of a play is learned
  whose end is held out;
- speeches that share seven words in a row with the held-out tenth, wherever they are from;
- stage directions, headings, lists of persons: tiny Shakespeare has none.
"""
import collections
import os
import re
import sys

from fetch_test_data import cache_directory

# Words in a row that two texts do not share by chance. ("I pray you, what is the" is six of them.)
RUN = 7
# Of the runs of a play, the share that makes it one of tiny Shakespeare's. Those that are not have under 0.01.
SHARED = 0.1
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")


def runs(text):
    words = re.findall(r"[a-z]+", text.lower().replace("'", ""))
    return {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}


def speeches(play):
    """Speaker and lines of each speech of a Gutenberg play: a name alone on a line, a full stop after it."""
    play = re.sub(r"\[[^\]]*\]", "", play.replace("\r", ""))
    speaker, lines = None, []
    for line in play.split("\n"):
        line = line.strip()
        heading = re.match(r"(ACT|SCENE|PROLOGUE|EPILOGUE|THE END|INDUCTION)\b", line.upper())
        name = re.fullmatch(r"([A-Z][A-Za-z',& -]{1,30})\.?", line)
        # A name stands alone after an empty line, in capitals, or shortened as in "Ham."
        if name and (name[1].isupper() or line.endswith(".") and len(line) <= 14) and not heading and not lines_open(lines):
            if speaker and any(lines):
                yield speaker, [line for line in lines if line]
            speaker, lines = name[1].strip(), []
        elif heading:
            if speaker and any(lines):
                yield speaker, [line for line in lines if line]
            speaker, lines = None, []
        else:
            lines.append(line)
    if speaker and any(lines):
        yield speaker, [line for line in lines if line]


def lines_open(lines):
    """Whether a speech goes on: the line before was not empty."""
    return bool(lines) and lines[-1] != ""


def full_name(short, names, common):
    """A speaker as tiny Shakespeare writes it: ROMEO, First Servant; "Ham." is HAMLET."""
    title = short.title()
    # A name that nobody says, but the beginning of one that is often said, stands for that.
    for length in range(len(title), 2, -1) if len(title) < 6 else []:
        longer = [name for name in names if name.startswith(title[:length]) and names[name] >= 5]
        if " " in title or names[title] >= 3 or title in common:
            break
        if longer:
            title = max(longer, key=names.get)
            break
    if title.split()[0].lower() in ORDINALS or title in common:
        return title
    return title.upper()


def main():
    cache = cache_directory() / "shakespeare"
    tiny = (cache / "dataset.txt").read_text()
    cut = len(tiny) - len(tiny) // 10
    everything, held_out = runs(tiny), runs(tiny[cut:])
    common = {name for name in re.findall(r"\n\n([A-Z][A-Za-z ]+):\n", tiny) if not name.isupper()}
    texts, left_out, dropped = [], [], 0
    for path in sorted((cache_directory() / "plays").glob("*.txt")):
        play = path.read_text(encoding="utf-8", errors="replace")
        own = runs(play)
        shared = len(own & everything) / len(own)
        if shared > SHARED:
            left_out.append(f"{path.stem} ({shared:.2f})")
            continue
        # What comes before the first act are title and persons.
        spoken = list(speeches(play[re.search(r"^\s*(ACT|SCENE|Act|PROLOGUE)\b.*$", play, re.M).start() :]))
        names = collections.Counter(word for _, lines in spoken for word in re.findall(r"\b[A-Z][a-z]+\b", " ".join(lines)))
        for speaker, lines in spoken:
            text = "\n".join(lines)
            if runs(text) & held_out:
                dropped += 1
            else:
                texts.append(f"{full_name(speaker, names, common)}:\n{text}\n\n")
    plays = "".join(texts)
    # A speech at a time was looked at; runs across speeches are looked at here.
    if leaks := runs(plays) & held_out:
        sys.exit(f"{len(leaks)} runs of {RUN} words of the held-out text are left: {next(iter(leaks))}")
    part = cache / ".plays.txt.part"
    part.write_text(plays)
    os.replace(part, cache / "plays.txt")
    print(f"{cache / 'plays.txt'}: {len(plays):,} characters, {len(texts):,} speeches; {dropped} speeches like held-out ones left out")
    print("plays of tiny Shakespeare left out:", ", ".join(left_out))


if __name__ == "__main__":
    main()
