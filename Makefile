# People and the continuous integration use the same entry points. Needed: Python >= 3.11, pip, make.
#
#   make demo     the main job on this machine: measure, predict, place, one report
#   make test     formatting, lint, types, layers, tests
#   make lint     the first four of these       make format   fix formatting
#   make docs     build the documentation       make clean    remove what can be built again
#   make fuzz     damage files of every kind for a minute each, as every night; FUZZ_SECONDS, FUZZ_SEED
#
# PYTHON=python3.12 chooses the interpreter, VENV=folder the environment, PIP_FLAGS="..." adds options to pip (where to
# find a CPU build of torch, say).

PYTHON ?= python3
VENV ?= .venv
PIP_FLAGS ?=
DEMO_FLAGS ?=
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= $(shell date +%j)
PYTEST_FLAGS ?= -n 2 --dist loadfile --no-loadscope-reorder

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet $(PIP_FLAGS) -c constraints.txt
INPUTS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test tests fuzz lint format docs wheel clean

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

demo: $(VENV)/.stamp-demo
	$(BIN)/opmark quickstart $(DEMO_FLAGS)

test: lint tests

tests: $(VENV)/.stamp-dev
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

fuzz: $(VENV)/.stamp-dev
	$(BIN)/python -m pytest -n 2 -m fuzz tests/readers --fuzz-seconds $(FUZZ_SECONDS) --fuzz-seed $(FUZZ_SEED)
	$(BIN)/python -m pytest -n 2 --timeout 0 tests/readers/test_flips.py --flips 2000

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.stamp-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.stamp-dev
	$(BIN)/python docs/generate_reference.py
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

wheel: $(VENV)/.stamp-dev
	$(BIN)/python -m build --wheel

clean:
	rm -rf build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A Python whose venv module comes without pip (Debian splits it off) lends its own pip.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "OpMark needs Python 3.11 or newer; choose one with: make PYTHON=python3.12" >&2; exit 4; }
	$(PYTHON) -m venv $(VENV) || \
	  { $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }

# Stamps: a second call installs nothing unless the requirements changed.
$(VENV)/.stamp-demo: $(INPUTS) | $(BIN)/python
	$(PIP) -e .
	@echo "Compiling the search, once (a minute or two of processor time) ..."
	$(BIN)/python -m opmark.leaderboards.search.compilation
	@touch $@

$(VENV)/.stamp-dev: $(INPUTS) | $(BIN)/python
	$(PIP) -e '.[dev,docs,meta,models,sandbox,solvers]'
	@touch $@ $(VENV)/.stamp-demo
