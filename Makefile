# `make demo` and `make test` do all the set-up that they need; `make help` lists the rest.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
export PYTHONHASHSEED = 0
# The theme of the site prints a notice about its successor on every start.
export NO_MKDOCS_2_WARNING = 1

.DEFAULT_GOAL := help
.PHONY: help demo test check quick docs serve wheel bench bench-corruptions results format clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev,docs]'
	@touch $@

demo: $(READY)  ## the main job on the bundled model and images
	$(BIN)/synaptune demo

check: $(READY)  ## format, lint, types: seconds
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

quick: $(READY)  ## unit and conformance tests on tiny models: under a minute
	$(BIN)/pytest -q -x -n 2 -m "not slow and not data" tests/unit tests/conformance

test: check docs  ## everything: lint, types, the site, doctests, README, all tests
	$(BIN)/pytest -q -n 2

docs: $(READY)  ## the documentation site, into site/; warnings are errors
	$(BIN)/mkdocs build --strict --quiet

serve: $(READY)  ## the site on this machine, rebuilt on every change
	$(BIN)/mkdocs serve

wheel: $(READY)  ## build the wheel, try it in an empty environment
	PYTHON=$(BIN)/python .ci/wheel

bench: $(READY)  ## a table of the paper: make bench TABLE=cifar10c (hours; resumes)
	$(BIN)/synaptune bench $(TABLE)

bench-corruptions: $(READY)  ## speed of the corruptions, into results/corruption-speed.json
	$(BIN)/python benchmarks/corruption_speed.py

results: $(READY)  ## render pages of results from their rows, and parts of pages from the code; measures nothing
	$(BIN)/python scripts/render_results.py
	$(BIN)/python scripts/render_docs.py

format: $(READY)  ## rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove what the targets above made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist site
