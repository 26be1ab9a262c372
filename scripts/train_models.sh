#!/bin/sh
# Trains the models inside the program, from nothing: those that are named, or all.
#
#     make models             all, about an hour and a half on two cores
#     make model-shakespeare  one
#
# The same commands with the same seed give the same losses on any machine of the same instruction set. A run that was
# interrupted is begun again.
set -eu
cache=${FOVEAL_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/foveal-test}
out=out/models

train() {
    case $1 in
    translate-en-ko)
        $FOVEAL train pairs -d "$out/$1" --steps 12000 --half ;;
    shakespeare)
        python3 scripts/prepare_plays.py
        $FOVEAL train text "$cache/shakespeare/dataset.txt" --also "$cache/shakespeare/plays.txt" -d "$out/$1" \
            --shape llama --vocabulary 6656 --dims 160 --heads 10 --layers 5 --context 256 --batch 8 \
            --steps 2000 --rate 0.003 --dropout 0.05 --evaluate-every 200 --half ;;
    digits)
        $FOVEAL train digits "$cache/mnist/train-images-idx3-ubyte" "$cache/mnist/train-labels-idx1-ubyte" \
            -d "$out/$1" --steps 1500 --half ;;
    reader)
        $FOVEAL train questions -d "$out/$1" --half ;;
    *)
        echo "there is no model $1 inside; there are $all" >&2
        exit 1 ;;
    esac
}

all="translate-en-ko shakespeare digits reader"
for name in ${*:-$all}; do
    rm -rf "${out:?}/$name"
    train "$name"
    # The model and its vocabularies; the state of the run and its losses stay behind.
    (cd "$out/$name" && find . -name '*.json' -o -name 'model.safetensors') | while read -r file; do
        mkdir -p "crates/assets/models/$name/$(dirname "$file")"
        cp "$out/$name/$file" "crates/assets/models/$name/$file"
    done
done
