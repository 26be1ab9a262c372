# What there is to do here. `make help` lists it.

CARGO ?= cargo
# Passed on: make compare ARGS="--only backward --rounds 5"
ARGS ?=
# The comparison's Python packages. Set PYTHON to one that has them already, and nothing is installed.
VENV := .venv-bench

# The documents' line of Shakespeare, and a sentence to translate.
LINE := ROMEO: But soft, what light through yonder window breaks?
SENTENCE := The student reads two books.
# Installing takes root.
ROOT := $(if $(filter-out 0,$(shell id -u)),sudo,)
FOVEAL = $(CARGO) run --quiet --release --package foveal-cli --

.PHONY: help visualize translate data training-data strings models test fmt lint rust-test examples browser-test chromium doc bench compare

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

visualize: ## self-attention, all heads and the causal mask, in the terminal and as pictures in out/
	@mkdir -p out
	@$(FOVEAL) see "$(LINE)" --tokens words
	@$(FOVEAL) see "$(LINE)" --tokens words -o out/attention.png
	@$(FOVEAL) see "$(LINE)" --head all -o out/heads.png
	@$(FOVEAL) see "$(LINE)" -o out/attention.html
	@$(FOVEAL) lab causal -o out/causal.png

translate: ## translate a sentence, and see what each word was made from
	@mkdir -p out
	@$(FOVEAL) translate "$(SENTENCE)"
	@$(FOVEAL) translate "$(SENTENCE)" -o out/translation.png

data: ## fetch the real checkpoints, vocabularies and texts that tests need, once, into the user's cache
	python3 scripts/fetch_test_data.py

training-data: ## fetch the play and the digits that the models inside are trained on
	python3 scripts/fetch_test_data.py training

strings: ## fetch English-Korean strings of programs, to train a translator on (apt-get, some minutes)
	python3 scripts/fetch_strings.py

models: training-data ## train the models inside the program again, from nothing, into assets/models
	FOVEAL="$(FOVEAL)" scripts/train_models.sh

test: data fmt lint rust-test examples browser-test ## format, lints, all tests, doc examples, examples, the page in a browser

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# nextest runs test binaries side by side; it knows no doc examples.
rust-test:
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
	  $(CARGO) nextest run --workspace; \
	else \
	  $(CARGO) test --workspace --lib --bins --tests; \
	fi
	$(CARGO) test --workspace --doc

examples:
	@for example in crates/foveal/examples/*.rs; do \
	  name=$$(basename $$example .rs); echo "example $$name"; \
	  $(CARGO) run --quiet --package foveal --example $$name >/dev/null || exit 1; \
	done

# The page in real Chromium.
browser-test: .venv-browser/ready chromium
	$(CARGO) run --quiet --package foveal-view --example gallery -- out/gallery pages
	.venv-browser/bin/python crates/view/tests/browser/check.py out/gallery

chromium:
	@command -v chromium >/dev/null || { $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq --no-install-recommends chromium; }

.venv-browser/ready: crates/view/tests/browser/requirements.txt
	python3 -m venv --clear .venv-browser
	.venv-browser/bin/python -m pip install --quiet -r $<
	touch $@

doc: ## the documentation, with its formulas, in target/doc/foveal
	RUSTDOCFLAGS="--html-in-header $(CURDIR)/docs/katex.html -D warnings" $(CARGO) doc --workspace --no-deps
	@test -d target/doc/katex || (cd target/doc && npm pack --silent katex >/dev/null && tar xzf katex-*.tgz \
	  && mv package/dist katex && rm -r package katex-*.tgz)

bench: ## the engine alone, against the limits of the machine
	$(CARGO) bench -p foveal --bench engine -- $(ARGS)

compare: ## engine, models and training against PyTorch, transformers, ONNX Runtime and candle; see out/compare.json
	CARGO=$(CARGO) $(PYTHON) bench/compare.py $(ARGS)

ifndef PYTHON
PYTHON := $(VENV)/bin/python
compare: $(VENV)/ready
endif

$(VENV)/ready: bench/requirements.txt
	python3 -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet -r bench/requirements.txt
	touch $@
