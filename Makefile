# What there is to do here. `make help` lists it.

CARGO ?= cargo
# The comparison's Python packages. Set PYTHON to one that has them already, and nothing is installed.
VENV := .venv-bench
# Passed on: make compare ARGS="--only backward --rounds 5"
ARGS ?=

.PHONY: help test fmt bench compare

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

test: ## all tests and doc examples
	$(CARGO) test --workspace

fmt: ## the one format
	$(CARGO) fmt --all

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
