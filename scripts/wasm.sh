#!/usr/bin/env bash
# The engine as WebAssembly for the page: `make wasm`. With --check: whether the committed module was made from these sources.
#
# Needs the target wasm32-unknown-unknown, which rustup adds. Where there is no rustup, Debian's rustc-web, cargo-web and
# rust-web-src do, with CARGO="env RUSTC_BOOTSTRAP=1 cargo" and WASM_FLAGS="-Zbuild-std=std,panic_abort".
set -euo pipefail
cd "$(dirname "$0")/.."

module=crates/view/page/engine.wasm
# Everything that the module is made from, apart from the libraries, which the lock file names.
sources() { find wasm/src wasm/Cargo.toml wasm/Cargo.lock crates/foveal/src crates/compute/src -type f | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d' ' -f1; }

if [ "${1:-}" = --check ]; then
  if [ "$(sources)" != "$(cat $module.sources)" ]; then
    echo "$module is older than the engine: run \`make wasm\` and commit the module" >&2
    exit 1
  fi
  exit 0
fi

if command -v rustup >/dev/null; then rustup target add wasm32-unknown-unknown; fi
# No path of this machine goes into the module.
export RUSTFLAGS="-C target-feature=+simd128 --remap-path-prefix=$PWD=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$HOME=home"
# shellcheck disable=SC2086
(cd wasm && ${CARGO:-cargo} build --release --target wasm32-unknown-unknown ${WASM_FLAGS:-})
cp wasm/target/wasm32-unknown-unknown/release/foveal_wasm.wasm $module
chmod 644 $module
sources > $module.sources
wc -c $module
