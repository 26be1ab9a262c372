# What there is to do here. `make help` lists it.

CARGO ?= cargo
# Passed on: make compare ARGS="--only backward --rounds 5"
ARGS ?=
# The comparison's Python packages. Set PYTHON to one that has them already, and nothing is installed.
VENV := .venv-bench

# The documents' line of Shakespeare, and a sentence to translate.
LINE := ROMEO: But soft, what light through yonder window breaks?
# A head of the model inside that looks at the word before.
HEAD := --layer 4 --head 4
SENTENCE := The student reads two books.
# The oldest compiler that is promised to do.
RUST_VERSION := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
# The commit or tag that the public interface is compared with: the last release, or the last commit where there is none.
SINCE ?= $(shell git describe --tags --abbrev=0 2>/dev/null || echo HEAD)
# Where `make data` puts what it fetches.
TEST_CACHE = $(if $(FOVEAL_TEST_CACHE),$(FOVEAL_TEST_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/foveal-test)
# Installing takes root.
ROOT := $(if $(filter-out 0,$(shell id -u)),sudo,)
FOVEAL = $(CARGO) run --quiet --release --package foveal-cli --

.PHONY: help visualize translate data training-data strings models test test-frameworks fmt lint rust-test examples lessons lessons-test site site-test page-types wasm wasm-check browser-test chromium sanitize doc bench compare package msrv semver python test-python python-lint cluster test-cluster

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

visualize: ## self-attention, all heads and the causal mask, in the terminal and as pictures in out/
	@mkdir -p out
	@$(FOVEAL) see "$(LINE)" --tokens words $(HEAD)
	@$(FOVEAL) see "$(LINE)" --tokens words $(HEAD) -o out/attention.png
	@$(FOVEAL) see "$(LINE)" --head all -o out/heads.png
	@$(FOVEAL) see "$(LINE)" -o out/attention.html
	@$(FOVEAL) lab causal -o out/causal.png

translate: ## translate a sentence, and see what each word was made from
	@mkdir -p out
	@$(FOVEAL) translate "$(SENTENCE)"
	@$(FOVEAL) translate "$(SENTENCE)" -o out/translation.png

data: ## fetch the real checkpoints, vocabularies and texts that tests need, once, into the user's cache
	python3 scripts/fetch_test_data.py

training-data: ## fetch the plays and the digits that the models inside are trained on
	python3 scripts/fetch_test_data.py training

strings: ## fetch English-Korean strings of programs, to train a translator on (apt-get, some minutes)
	python3 scripts/fetch_strings.py

models: training-data ## train the models inside the program again, from nothing, into crates/assets/models
	FOVEAL="$(FOVEAL)" scripts/train_models.sh

model-%: training-data ## train one of them: model-shakespeare, model-digits, model-translate-en-ko, model-reader
	FOVEAL="$(FOVEAL)" scripts/train_models.sh $*

test: data fmt lint rust-test examples lessons-test wasm-check page-types browser-test site-test test-python ## format, lints, all tests, doc examples, examples, the page in a browser

# candle and burn have a workspace and a lock file of their own: they take minutes to build, and newer compilers.
# Both packages at once, always: with one of them, cargo would choose other features and build most crates anew.
test-frameworks: data ## foveal-candle and foveal-burn: format, lints, tests, doc examples, examples
	@mkdir -p out
	cd frameworks && $(CARGO) fmt --all --check
	cd frameworks && $(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	cd frameworks && $(CARGO) test --locked
	cd frameworks && $(CARGO) run --quiet --locked --example bert -- "$(TEST_CACHE)/minilm" ../out/bert.png
	cd frameworks && $(CARGO) run --quiet --locked --example recall -- ../out/recall.png

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# The data is there (see `data`): no test may be skipped for want of it.
rust-test: export FOVEAL_TEST_DATA = required
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
	$(CARGO) run --quiet --package foveal-models --example heads -- crates/assets/models/shakespeare >/dev/null
	$(CARGO) run --quiet --package foveal-models --example tile -- crates/assets/models/shakespeare "to be or not to be" >/dev/null

# The page's program is plain JavaScript; its types stand in comments.
page-types: node_modules/ready
	node_modules/.bin/tsc --project crates/view/page/jsconfig.json

node_modules/ready: Makefile
	npm install --no-save --no-package-lock --silent --no-audit --no-fund typescript@7.0.2
	touch $@

wasm: ## the engine as WebAssembly, which the page computes with: crates/view/page/engine.wasm
	CARGO="$(CARGO)" scripts/wasm.sh

wasm-check:
	scripts/wasm.sh --check

# The page in real Chromium.
browser-test: .venv-browser/ready chromium
	$(CARGO) run --quiet --package foveal-view --example gallery -- out/gallery pages
	@for ending in html json; do \
	  $(CARGO) run --quiet --package foveal-cli -- see "$(LINE)" --layer all --tokens tokens --exact -o out/gallery/model-shakespeare.$$ending && \
	  $(CARGO) run --quiet --package foveal-cli -- see "$(SENTENCE)" --model translate-en-ko --layer all --tokens tokens --exact -o out/gallery/model-translate.$$ending || exit 1; \
	done
	.venv-browser/bin/python crates/view/tests/browser/check.py out/gallery

chromium:
	@command -v chromium >/dev/null || { $(ROOT) apt-get update -qq && $(ROOT) apt-get install -y -qq --no-install-recommends chromium; }

.venv-browser/ready: crates/view/tests/browser/requirements.txt
	python3 -m venv --clear .venv-browser
	.venv-browser/bin/python -m pip install --quiet -r $<
	touch $@

lessons: ## compute every number, table and picture of the lessons again
	$(CARGO) build --release --package foveal-cli
	python3 scripts/lessons.py renew

# What make test runs of them, with the program that the tests have built.
lessons-test: site
	$(CARGO) build --package foveal-cli
	FOVEAL=target/debug/foveal python3 scripts/lessons.py check

site: out/site-modules/ready ## the lessons as a site that works from its folder, out/site/index.html
	$(CARGO) run --quiet --package foveal-cli -- learn --list --json >out/learn.json
	$(CARGO) run --quiet --package foveal-view --example lesson -- out/lesson.js
	SITE_MODULES=out/site-modules node scripts/site/build.mjs out/site out/learn.json out/lesson.js

# The site in real Chromium: links, pictures, formulas, and the parts to try, in both languages.
site-test: site .venv-browser/ready chromium
	.venv-browser/bin/python scripts/site/check.py out/site out/learn.json

out/site-modules/ready: scripts/site/build.mjs
	npm install --silent --no-save --prefix out/site-modules markdown-it@14 markdown-it-attrs@4 katex@0.16
	touch $@

cluster: ## Foveal over MPI: installs what it needs, and builds cluster/target/release/foveal-mpi
	scripts/cluster.sh install
	CARGO=$(CARGO) scripts/cluster.sh cargo build --release

test-cluster: ## its tests, on 1, 2, 3 and 4 ranks of this machine
	scripts/cluster.sh install
	CARGO=$(CARGO) scripts/cluster.sh cargo fmt --check
	CARGO=$(CARGO) scripts/cluster.sh cargo clippy --all-targets -- -D warnings
	CARGO=$(CARGO) scripts/cluster.sh cargo test

# A profile of its own: a panic must raise in Python, not end the interpreter.
python: .venv-python/ready ## the wheel of the Python package, in out/wheels
	cd python && ../.venv-python/bin/maturin build --release --out ../out/wheels

python-lint:
	$(CARGO) fmt --manifest-path python/Cargo.toml --check
	$(CARGO) clippy --manifest-path python/Cargo.toml --release -- -D warnings

# The wheel as users get it, in the one environment that has PyTorch and transformers.
test-python: python python-lint
	.venv-python/bin/python -m pip install --quiet --force-reinstall --no-deps out/wheels/foveal-*.whl
	cd python/tests && ../../.venv-python/bin/python -m pytest -q .

# Through a link, --clear would empty an environment that other checkouts use.
.venv-python/ready: python/tests/requirements.txt
	@test ! -L .venv-python || { echo ".venv-python is a link: install $< there, then touch $@"; exit 1; }
	python3 -m venv --clear .venv-python
	.venv-python/bin/python -m pip install --quiet -r $<
	touch $@

sanitize: ## the engine's tests under AddressSanitizer, ThreadSanitizer and valgrind (half an hour)
	CARGO=$(CARGO) scripts/sanitize.sh $(ARGS)

doc: ## the documentation, with its formulas, in target/doc/foveal
	RUSTDOCFLAGS="--html-in-header $(CURDIR)/docs/katex.html -D warnings" $(CARGO) doc --workspace --no-deps
	@test -d target/doc/katex || (cd target/doc && npm pack --silent katex >/dev/null && tar xzf katex-*.tgz \
	  && mv package/dist katex && rm -r package katex-*.tgz)

package: ## every crate as it would be published: built from its package alone, at most 10 MB
	CARGO=$(CARGO) python3 scripts/check_packages.py $(ARGS)

# In a folder of its own: another compiler would build everything in target/ anew.
msrv: ## check everything with the oldest compiler that rust-version promises; rustup fetches it
	rustup toolchain install --no-self-update --profile minimal $(RUST_VERSION)
	CARGO_TARGET_DIR=target/msrv rustup run $(RUST_VERSION) cargo check --workspace --all-targets --locked $(ARGS)

semver: ## compare the public interface with that of the last release, or of SINCE=<commit or tag>
	@$(CARGO) semver-checks --version >/dev/null 2>&1 || { echo "first: cargo install --locked cargo-semver-checks"; exit 1; }
	$(CARGO) semver-checks --workspace --exclude foveal-cli --baseline-rev $(SINCE) $(ARGS)

bench: ## the engine alone, against the limits of the machine
	$(CARGO) bench -p foveal --bench engine -- $(ARGS)

compare: ## engine, models and training against PyTorch, transformers, ONNX Runtime, candle and burn; see out/compare.json
	CARGO=$(CARGO) $(PYTHON) bench/compare.py $(ARGS)

ifndef PYTHON
PYTHON := $(VENV)/bin/python
compare: $(VENV)/ready
endif

$(VENV)/ready: bench/requirements.txt
	python3 -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet -r bench/requirements.txt
	touch $@
