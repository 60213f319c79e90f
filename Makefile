# mirrorspark: everything a newcomer needs. `make demo` and `make test` do all their own set-up.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SEED ?= 1
# Tests mostly wait for brokers: two workers, each with clusters of its own, use two cores well.
WORKERS ?= 2
# Some machines tell Python to keep no byte code; then each of the hundreds of processes of a test run compiles everything.
export PYTHONDONTWRITEBYTECODE :=
# Brokers sync their files again and again, which costs nothing in memory. Where there is little of that: on disk, as usual.
MEMORY := /dev/shm
MEMORY_MB_MIN := 6000

.PHONY: help install demo test lint format bench chaos docs ci lock clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## make the .venv with locked dependencies, and nothing else

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("mirrorspark needs Python 3.11 or later; set PYTHON=…" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

demo: install  ## two real brokers, a live flow, kills on the way, a verdict
	$(BIN)/mirrorspark demo

test: install lint  ## everything, on real brokers and real Spark
	@free=$$(df -m --output=avail $(MEMORY) 2> /dev/null | tail -1); \
	test "$${free:-0}" -lt $(MEMORY_MB_MIN) || base="-p $(MEMORY)"; \
	TMPDIR=$$(mktemp -d $$base -t mirrorspark-test-XXXXXX) && export TMPDIR && echo "temporary files: $$TMPDIR" && \
	{ $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 30; code=$$?; \
	  rm -rf "$$TMPDIR"; exit $$code; }

lint: install  ## ruff and mypy
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy

format: install  ## rewrite to the house's style
	$(BIN)/ruff format src tests
	$(BIN)/ruff check --fix src tests

bench: install  ## against the real MirrorMaker 2, in one run
	$(BIN)/mirrorspark bench mm2

chaos: install  ## the long runs of seeded kills, and of faults on three-broker clusters (SEED=…)
	$(BIN)/mirrorspark chaos --kills 40 --seed $(SEED)
	$(BIN)/mirrorspark chaos --kills 40 --seed $(SEED) --transactions
	$(BIN)/mirrorspark chaos --brokers 3 --faults 20 --seed $(SEED)
	$(BIN)/mirrorspark chaos --brokers 3 --faults 20 --seed $(SEED) --transactions

docs: install  ## regenerate the reference pages
	mkdir -p docs/reference
	$(BIN)/python -c 'from mirrorspark.__main__ import command_reference; print(command_reference(), end="")' > docs/reference/cli.md
	$(BIN)/python -m mirrorspark.config.reference_page docs/reference/settings.md
	$(BIN)/python -m mirrorspark.observe.metrics_page docs/reference/metrics.md

ci:  ## what CI runs
	bash .ci/run

lock:  ## resolve the dependencies anew (needs uv)
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-annotate --no-header --extra lab --extra dev -o requirements.lock pyproject.toml

clean:  ## remove the .venv and caches of the checkout
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
