#!/usr/bin/env python3
"""English-Korean strings of programs' interfaces, from Debian packages, as a file of pairs to train on.

    python3 scripts/fetch_strings.py          (or: make strings)

Downloads the packages with apt-get, unpacks their Korean catalogues (.mo) without installing anything, and writes
strings/pairs.tsv into $FOVEAL_TEST_CACHE, else into foveal-test in the user's cache directory: one pair a line, of at most 12
words, without those that are the same in both languages.
"""
import gettext
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from fetch_test_data import cache_directory

PACKAGES = """
apt aptitude balsa bash coreutils debconf-i18n digikam-data dpkg eog evince-common evolution-common evolution-data-server-common
file-roller gcompris-qt-data gedit-common gimp-data git gnome-control-center-data gnome-shell-common gnome-terminal-data gnupg-l10n
gnumeric-common grep gthumb-data inkscape iso-codes libc-l10n libglib2.0-data libgtk-3-common libreoffice-l10n-ko nautilus-data
synaptic totem-common vlc-l10n
""".split()
MOST_WORDS = 12


def catalogues(folder: Path):
    for package in PACKAGES:
        got = subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, stderr=subprocess.DEVNULL)
        if got.returncode != 0:
            print(f"{package}: not to be had, left out", file=sys.stderr)
            continue
        for archive in folder.glob("*.deb"):
            into = folder / archive.stem
            subprocess.run(["dpkg-deb", "-x", archive, into], check=True)
            archive.unlink()
            yield from into.glob("usr/share/locale*/ko/LC_MESSAGES/*.mo")


def pairs(catalogue: Path):
    """Strings that say something in both languages, without what marks keys and places for values."""
    try:
        with open(catalogue, "rb") as file:
            entries = gettext.GNUTranslations(file)._catalog
    except (OSError, UnicodeDecodeError, ValueError):
        return
    for english, korean in entries.items():
        if isinstance(english, tuple) or not english or not isinstance(korean, str):
            continue
        english, korean = (clean(text.split("\x04")[-1]) for text in (english, korean))
        words = len(english.split())
        if 0 < words <= MOST_WORDS and len(korean.split()) <= MOST_WORDS and re.search("[가-힣]", korean):
            if re.search("[A-Za-z]{2}", english) and not re.search("[가-힣]", english):
                yield english, korean


def clean(text: str) -> str:
    text = re.sub(r"<[^>]*>", " ", text)
    text = re.sub(r"\((?:_|&)[A-Za-z0-9]\)|[_&~](?=\w)", "", text)
    return " ".join(text.split()).strip()


def main():
    target = cache_directory() / "strings" / "pairs.tsv"
    if target.exists():
        print(f"{target}: there")
        return
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for catalogue in catalogues(Path(folder)):
            for english, korean in pairs(catalogue):
                found.setdefault(english, korean)
    if not found:
        sys.exit("no strings: apt-get could download none of the packages; run apt-get update first")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.write_text("".join(f"{english}\t{korean}\n" for english, korean in sorted(found.items())))
    part.rename(target)
    print(f"{target}: {len(found)} pairs")


if __name__ == "__main__":
    main()
