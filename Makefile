# Everything is done from here: `make help` lists the commands. Needs Python 3.11 or newer, gcc, cargo and npm.

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# Each of the processes that test would make the tests' modules anew, and take ten seconds for it.
unexport PYTHONDONTWRITEBYTECODE

# One more than processors: a third of the time of the tests is waiting, for programs that run for a while.
JOBS ?= $(shell echo $$(($$(nproc) + 1)))
FUZZ_SECONDS ?= 600
CODEC_FUZZ_FACTOR ?= 1000
PAGE_FUZZ_FACTOR ?= 50
VENV := .venv
PYTHON := $(VENV)/bin/python
IMAGE := src/clew/_runtime/clew-runtime-x86_64
CODEC := src/clew/_runtime/libclew-pathcodec.so
CODEC_SOURCES := Cargo.toml Cargo.lock $(shell find pathcodec -type f)
# The runtime links the codec's rules.
RUNTIME_SOURCES := $(shell find runtime -type f) $(CODEC_SOURCES)
PAGE := src/clew/_page/index.html
PAGE_SOURCES := $(shell find web -name node_modules -prune -o -type f -print)
DEMO := build/demo

# What pytest ends with where PYTEST leaves none of the tests.
NOTHING_CHOSEN := 5

# Files whose times say what is up to date.
REQUIREMENTS := $(VENV)/.requirements
INSTALLED := $(VENV)/.installed
MODULES := web/node_modules/.installed
PEERS_VENV := build/peers-venv
PEERS := $(PEERS_VENV)/.installed

.PHONY: help demo test test-all test-python test-long test-timing test-rust test-runtime test-pathcodec test-web test-web-units test-suites screenshots check check-python check-web check-types check-floors check-rust check-generated \
        check-image check-sources generate build wheel bench bench-quick bench-peers bench-compare \
        bench-baseline stress fuzz clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ------------------------------------------------------------------------------------------------------------- make it

$(REQUIREMENTS): requirements-dev.txt
	@test -x $(PYTHON) || ./checks/make_venv $(VENV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

$(IMAGE): $(RUNTIME_SOURCES) hatch_build.py | $(REQUIREMENTS)
	$(PYTHON) hatch_build.py runtime
	@touch $@

$(CODEC): $(CODEC_SOURCES) hatch_build.py | $(REQUIREMENTS)
	$(PYTHON) hatch_build.py pathcodec
	@touch $@

$(MODULES): web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	@touch $@

$(PAGE): $(PAGE_SOURCES) hatch_build.py $(MODULES) | $(REQUIREMENTS)
	cd web && npm run build
	@touch $@

# An editable install: the sources are used where they lie, so it is made again only when the package's frame changes.
$(INSTALLED): pyproject.toml hatch_build.py $(REQUIREMENTS) | $(IMAGE) $(CODEC) $(PAGE)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

build: $(INSTALLED) $(IMAGE) $(CODEC) $(PAGE) ## make .venv, compile the runtime and the path codec, build the page, install clew into .venv

wheel: $(REQUIREMENTS) ## build the wheel into dist/
	$(PYTHON) -m hatchling build -t wheel
	@ls -l dist/*.whl

generate: $(REQUIREMENTS) ## write what is generated: from protocol/schema.toml, and descriptions of system calls
	PYTHONPATH=src $(PYTHON) -m clew.protocol.generate
	PYTHONPATH=src $(PYTHON) -m clew.api.generate

# -------------------------------------------------------------------------------------------------------------- try it

demo: build ## build, record a real program of this machine, print its report
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	$(VENV)/bin/clew record -o $(DEMO)/gzip.clew -- gzip -9c $(IMAGE) > $(DEMO)/image.gz
	@gzip -dc $(DEMO)/image.gz | cmp - $(IMAGE)
	$(VENV)/bin/clew info $(DEMO)/gzip.clew
	$(VENV)/bin/clew report $(DEMO)/gzip.clew --by function -n 12
	$(VENV)/bin/clew verify $(DEMO)/gzip.clew
	@echo
	@echo "The trace is $(DEMO)/gzip.clew. Next: $(VENV)/bin/clew record -- COMMAND, and README.md."

# --------------------------------------------------------------------------------------------------------------- tests

test: test-rust test-web-units test-python ## unit, property and end-to-end tests, and a glance at the viewer

test-all: test-rust test-long test-web test-suites ## and what takes longer, the whole viewer, families of system calls

SHORT := not stress and not timing and not suites and (glance or not browser)

test-python: build
	$(PYTHON) -m pytest -n $(JOBS) --dist worksteal -m "$(SHORT) and not long" $(PYTEST)

test-long: build ## the same of Python's, and what takes longer
	$(PYTHON) -m pytest -n $(JOBS) --dist worksteal -m "$(SHORT)" $(PYTEST)

# What is held against limits of time runs alone.
test-timing: build
	$(PYTHON) -m pytest -m "timing and not stress" tests/web tests/e2e $(PYTEST) || [ $$? = $(NOTHING_CHOSEN) ]
	cd web && CLEW_TIMING=1 npm run test

test-rust: test-runtime test-pathcodec

test-runtime:
	cargo test --locked -p clew-runtime --lib --quiet
	cargo test --locked -p clew-runtime --lib --quiet --features made-up

test-pathcodec:
	cargo test --locked -p clew-pathcodec --lib --quiet

test-web-units: $(MODULES)
	cd web && npm run test

test-web: build test-web-units test-timing ## the viewer's tests alone: the page's own, and those in a browser
	$(PYTHON) -m pytest -n $(JOBS) --dist worksteal -m "not stress and not timing" tests/web $(PYTEST)

test-suites: build ## families of system calls (tests/suites): each natively and recorded in all modes
	$(PYTHON) -m pytest -n $(JOBS) --dist worksteal -m suites tests/apps/test_suites.py $(PYTEST)

screenshots: build ## make the pictures of docs/screenshots anew
	$(PYTHON) -m tests.web.screenshots

stress: build ## whole programs, long runs
	CLEW_FORKED=0 $(PYTHON) -m pytest -m stress $(PYTEST)
	CLEW_STEP=4 $(PYTHON) -m pytest tests/e2e/test_killed_at_every_step.py $(PYTEST)

fuzz: build ## property tests with many more examples; random programs and damage, each for FUZZ_SECONDS
	$(PYTHON) -m pytest -n $(JOBS) -p checks.fuzz_profile --timeout 3600 tests/unit $(PYTEST)
	cd web && CLEW_FUZZ_FACTOR=$(PAGE_FUZZ_FACTOR) npm run test
	CLEW_FUZZ_SEED=$$(date +%s) CLEW_FUZZ_FACTOR=$(CODEC_FUZZ_FACTOR) \
	    cargo test --locked -p clew-pathcodec --lib --quiet --release
	$(PYTHON) -m tests.fuzz.run --seed $$(date +%s) --count 1000000 --seconds $(FUZZ_SECONDS)
	$(PYTHON) -m tests.fuzz.run --seed $$(date +%s) --count 1000000 --seconds $(FUZZ_SECONDS) --functions 20 --stepped
	$(PYTHON) -m tests.fuzz.corruption --seed $$(date +%s) --count 1000000 --seconds $(FUZZ_SECONDS)
	$(PYTHON) -m tests.fuzz.scribbles --seed $$(date +%s) --count 1000000 --seconds $(FUZZ_SECONDS)
	$(PYTHON) -m tests.fuzz.captures --seed $$(date +%s) --count 1000000 --seconds $(FUZZ_SECONDS)
	$(PYTHON) -m tests.fuzz.injections --seed $$(date +%s) --count 1000000 --seconds $(FUZZ_SECONDS)
	$(PYTHON) -m tests.fuzz.elf_headers --seed $$(date +%s) --count 1000000 --seconds $(FUZZ_SECONDS)

# -------------------------------------------------------------------------------------------------------------- checks

check: check-python check-types check-floors check-web check-rust check-generated check-image check-sources ## all static checks

check-python: $(REQUIREMENTS)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

check-types: $(REQUIREMENTS)
	$(VENV)/bin/mypy

check-floors: $(REQUIREMENTS)
	PYTHONPATH=src $(VENV)/bin/lint-imports --no-logo
	$(PYTHON) -m checks.rust_floors
	$(PYTHON) -m checks.rust_circles

check-web: $(MODULES)
	cd web && npm run check

check-rust:
	cargo fmt --check
	cargo clippy --locked --release -p clew-runtime --lib --bins --tests -- -D warnings
	cargo clippy --locked --release -p clew-runtime --lib --tests --features made-up -- -D warnings
	cargo clippy --locked --release -p clew-pathcodec --lib --tests --features loaded -- -D warnings

check-generated: $(REQUIREMENTS)
	PYTHONPATH=src $(PYTHON) -m clew.protocol.generate --check
	PYTHONPATH=src $(PYTHON) -m clew.api.generate --check

check-image: $(IMAGE) $(CODEC) $(REQUIREMENTS)
	PYTHONPATH=src $(PYTHON) -m checks.runtime_image $(IMAGE)
	$(PYTHON) -m checks.codec_library $(CODEC)

check-sources: $(REQUIREMENTS)
	$(PYTHON) -m checks.file_length
	$(PYTHON) -m checks.extern_blocks
	$(PYTHON) -m checks.system_calls
	$(PYTHON) -m checks.processor_ties

# ---------------------------------------------------------------------------------------------------------- benchmarks

bench: build ## all benchmarks and the peers that are here: ratios to native, into bench/results/
	$(PYTHON) -m bench.run

bench-quick: build ## the short benchmarks, few rounds, no peers
	$(PYTHON) -m bench.run --quick

bench-peers: $(PEERS) ## install the peers out of PyPI (frida, PyQBDI), apart from clew

bench-compare: build ## the baseline of this processor and the latest result side by side
	$(PYTHON) -m bench.compare

bench-baseline: build ## make the latest result the baseline of this processor, in bench/baselines/
	$(PYTHON) -m bench.baseline

$(PEERS): bench/peers/requirements.txt
	@test -x $(PEERS_VENV)/bin/python || ./checks/make_venv $(PEERS_VENV)
	$(PEERS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r bench/peers/requirements.txt
	@touch $@

# ------------------------------------------------------------------------------------------------------------ clean up

clean: ## remove everything that is built, and .venv
	rm -rf $(VENV) build dist target src/clew/_runtime src/clew/_page web/node_modules tests/programs/bin bench/bin bench/work
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
