#!/bin/sh
# Trains the models inside the program, from nothing. About ten minutes on two cores.
#
#     make models
#
# The same commands with the same seed give the same losses on any machine of the same instruction set. A run that was
# interrupted is begun again.
set -eu
cache=${FOVEAL_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/foveal-test}
out=out/models
rm -rf "$out"

$FOVEAL train pairs -d "$out/translate-en-ko" --steps 3000 --half
$FOVEAL train text "$cache/shakespeare/dataset.txt" -d "$out/shakespeare" \
    --vocabulary 1024 --dims 192 --heads 6 --layers 5 --context 256 --batch 8 --steps 2000 --dropout 0.2 --half
$FOVEAL train digits "$cache/mnist/train-images-idx3-ubyte" "$cache/mnist/train-labels-idx1-ubyte" \
    -d "$out/digits" --steps 1500 --half

for name in translate-en-ko shakespeare digits; do
    # The model and its vocabularies; the state of the run and its losses stay behind.
    (cd "$out/$name" && find . -name '*.json' -o -name 'model.safetensors') | while read -r file; do
        mkdir -p "crates/assets/models/$name/$(dirname "$file")"
        cp "$out/$name/$file" "crates/assets/models/$name/$file"
    done
done
