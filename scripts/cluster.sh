#!/usr/bin/env bash
# What the crate `cluster` needs to be built, and a way to run cargo in it:
#   scripts/cluster.sh install              MPI by apt-get where there is none, libclang by pip into .venv-cluster
#   scripts/cluster.sh cargo build …        cargo, in cluster/, with what the bindings of MPI are made with
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv-cluster
# The bindings are made by bindgen, which loads libclang.
clang() { python3 - "$PWD/$venv" <<'PYTHON'
import glob, sys
print(next(iter(glob.glob(sys.argv[1] + "/lib/python*/site-packages/clang/native")), ""))
PYTHON
}

case "${1:-}" in
  install)
    if ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null; then
      root=$([ "$(id -u)" = 0 ] || echo sudo)
      $root apt-get update -qq
      $root apt-get install -y -qq --no-install-recommends mpich libmpich-dev
    fi
    if [ -z "${LIBCLANG_PATH:-}" ] && [ ! -e $venv/ready ]; then
      python3 -m venv --clear $venv
      $venv/bin/python -m pip install --quiet libclang==18.1.1
      touch $venv/ready
    fi
    ;;
  cargo)
    shift
    export LIBCLANG_PATH="${LIBCLANG_PATH:-$(clang)}"
    # libclang from pip comes without the headers of a compiler.
    export BINDGEN_EXTRA_CLANG_ARGS="${BINDGEN_EXTRA_CLANG_ARGS:--I$(gcc -print-file-name=include)}"
    cd cluster
    exec "${CARGO:-cargo}" "$@"
    ;;
  *)
    echo "usage: scripts/cluster.sh install | cargo …" >&2
    exit 2
    ;;
esac
