#!/usr/bin/env python3
"""Package every crate as it would be published, build each from its package alone, and check their sizes.

    python3 scripts/check_packages.py [ARGUMENTS OF cargo package]      (or: make package)

A package is built from its archive in a folder of its own, so whatever a crate takes from outside itself is an error.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

# What the registry takes.
MOST = 10 * 1000 * 1000


def main():
    cargo = os.environ.get("CARGO", "cargo")
    if status := subprocess.run([cargo, "package", "--workspace", *sys.argv[1:]]).returncode:
        sys.exit(f"cargo package failed with status {status}")
    metadata = json.loads(subprocess.check_output([cargo, "metadata", "--no-deps", "--format-version", "1"]))
    folder = Path(metadata["target_directory"]) / "package"
    too_large = []
    for package in metadata["packages"]:
        archive = folder / f"{package['name']}-{package['version']}.crate"
        size = archive.stat().st_size
        print(f"{size / 1e6:6.2f} MB  {archive.name}")
        if size > MOST:
            too_large.append(archive.name)
    if too_large:
        sys.exit(f"more than {MOST // 1_000_000} MB: {', '.join(too_large)}; move what is large to a crate of its own")


if __name__ == "__main__":
    main()
