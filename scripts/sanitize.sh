#!/usr/bin/env bash
# The engine's tests under AddressSanitizer, ThreadSanitizer and valgrind: `make sanitize`. Half an hour on two cores, half
# of it compiling. A report of any of them is an error. `make sanitize ARGS="thread valgrind"` does a part.
#
# The sanitizers come with rustc, their switch does not: RUSTC_BOOTSTRAP=1 allows it on a stable compiler. The standard
# library is not compiled with them. For AddressSanitizer that means less to see, for ThreadSanitizer more to explain: see
# sanitize/thread.supp and the head of crates/foveal/tests/threads.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD/scripts/sanitize
cargo=${CARGO:-cargo}
folder=${CARGO_TARGET_DIR:-$PWD/target}/sanitize
target=x86_64-unknown-linux-gnu

# Every kernel on every instruction set, odd sizes, strided arrays, bad input, and the products of layers. Left out: the
# reference, which is safe code, and the sweep, which compares numbers on the paths that `options` takes as well.
address() {
  export RUSTC_BOOTSTRAP=1 RUST_BACKTRACE=0 RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="$folder/address"
  export LSAN_OPTIONS="suppressions=$here/leak.supp:print_suppressions=0"
  "$cargo" test -p foveal-compute --target $target --lib --tests
  "$cargo" test -p foveal --target $target --lib --test cache --test extremes --test family --test grid --test isa \
    --test limits --test linear --test memory --test nan --test options --test packed --test parts --test pytorch \
    --test rules --test score --test sinks --test sparse --test threads --test types
}

# Threads that share work, watched from within the pool; all other tests call from outside of it. crossbeam has fences that
# ThreadSanitizer cannot follow, and with its cfg orderings that it can.
thread() {
  export RUSTC_BOOTSTRAP=1 RUST_BACKTRACE=0 CARGO_TARGET_DIR="$folder/thread"
  export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg=crossbeam_sanitize_thread"
  export TSAN_OPTIONS="suppressions=$here/thread.supp"
  "$cargo" test -p foveal --target $target --test threads
}

# What the sanitizers do not see: values that were never written. valgrind runs one thread at a time, 50 times slower, and
# knows no AVX-512: the scalar path, and AVX2 in tests that take every path. So: random options, PyTorch's cases, the rules
# for bad input. Whether bits are the same on any number of threads would take it a quarter of an hour; where NaN spreads it
# cannot say, as valgrind 3.19 compares NaN wrongly by two of AVX's predicates (equal or unordered, and its opposite).
memory() {
  command -v valgrind >/dev/null || { echo "valgrind is not there: apt-get install valgrind" >&2; exit 1; }
  FOVEAL_ISA=scalar CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind --quiet --error-exitcode=9" \
    "$cargo" test -p foveal --lib --test isa --test options --test pytorch --test rules -- \
    --test-threads=1 --skip bit_identical --skip nan_spreads
}

for part in "${@:-all}"; do
  case $part in
    # Each in a shell of its own, for what it exports.
    all) (address); (thread); (memory) ;;
    address) (address) ;;
    thread) (thread) ;;
    valgrind) (memory) ;;
    *) echo "there is no part $part, but address, thread and valgrind" >&2; exit 1 ;;
  esac
done
