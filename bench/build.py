"""Builds the Rust programs that are measured."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def bench(package: str, name: str, folder: Path = ROOT) -> str:
    """A bench target of ours: where it is."""
    return built(["bench", "-p", package, "--bench", name, "--no-run"], folder, name)


def checked_out(revision: str) -> Path:
    """The repository as it was at a revision, in a folder of its own."""
    commit = subprocess.run(["git", "rev-parse", "--verify", f"{revision}^{{commit}}"], cwd=ROOT, capture_output=True, text=True)
    if commit.returncode != 0:
        sys.exit(f"there is no revision {revision!r}: {commit.stderr.strip()}")
    folder = ROOT / "out" / "against" / commit.stdout.strip()
    if not folder.exists():
        part = folder.with_suffix(".part")
        part.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", commit.stdout.strip()], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "x", "-C", str(part)], input=archive.stdout, check=True)
        part.rename(folder)
    return folder


def built(command: list[str], folder: Path, name: str) -> str:
    """Builds a Rust program, and says where it is."""
    # candle picks its vector code when it is compiled, by the flags in its .cargo/config.toml, which RUSTFLAGS would displace.
    environment = {key: value for key, value in os.environ.items() if key != "RUSTFLAGS"}
    if folder != ROOT:
        # Two revisions of one program would overwrite each other in a folder that they share.
        environment.pop("CARGO_TARGET_DIR", None)
    command = [os.environ.get("CARGO", "cargo"), *command, "--message-format=json-render-diagnostics"]
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"could not build {name}: see above")
    messages = map(json.loads, done.stdout.splitlines())
    found = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == name]
    return found[-1]
