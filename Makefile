# What there is to do here. `make help` lists it.

CARGO ?= cargo
# Passed on: make compare ARGS="--only backward --rounds 5"
ARGS ?=
# The comparison's Python packages. Set PYTHON to one that has them already, and nothing is installed.
VENV := .venv-bench

.PHONY: help visualize data test fmt lint rust-test examples doc bench compare

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

visualize: ## look at the attention of 16,384 tokens, at three zooms, in the terminal
	$(CARGO) run --quiet --release --package foveal --example map

data: ## fetch the real checkpoints, vocabularies and texts that tests need, once, into the user's cache
	python3 scripts/fetch_test_data.py

test: data fmt lint rust-test examples ## format, lints, all tests, doc examples, examples

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

doc: ## the documentation, with its formulas, in target/doc/foveal
	RUSTDOCFLAGS="--html-in-header $(CURDIR)/docs/katex.html -D warnings" $(CARGO) doc --workspace --no-deps
	@test -d target/doc/katex || (cd target/doc && npm pack --silent katex >/dev/null && tar xzf katex-*.tgz \
	  && mv package/dist katex && rm -r package katex-*.tgz)

bench: ## the engine alone, against the limits of the machine
	$(CARGO) bench -p foveal --bench engine -- $(ARGS)

compare: ## the engine against PyTorch, ONNX Runtime and candle; also written to out/compare.json
	CARGO=$(CARGO) $(PYTHON) bench/compare.py $(ARGS)

ifndef PYTHON
PYTHON := $(VENV)/bin/python
compare: $(VENV)/ready
endif

$(VENV)/ready: bench/requirements.txt
	python3 -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet -r bench/requirements.txt
	touch $@
