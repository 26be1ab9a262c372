"""Builds the Rust programs that are measured."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def bench(package: str, name: str) -> str:
    """A bench target of ours: where it is."""
    return built(["bench", "-p", package, "--bench", name, "--no-run"], ROOT, name)


def built(command: list[str], folder: Path, name: str) -> str:
    """Builds a Rust program, and says where it is."""
    # candle picks its vector code when it is compiled, by the flags in its .cargo/config.toml, which RUSTFLAGS would displace.
    environment = {key: value for key, value in os.environ.items() if key != "RUSTFLAGS"}
    command = [os.environ.get("CARGO", "cargo"), *command, "--message-format=json-render-diagnostics"]
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"could not build {name}: see above")
    messages = map(json.loads, done.stdout.splitlines())
    found = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == name]
    return found[-1]
