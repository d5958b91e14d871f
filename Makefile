# People and the continuous integration use the same entry points. Needed: Python >= 3.11, pip, make.
#
#   make demo     the main job on this machine: measure, predict, place, one report
#   make test     formatting, lint, types, layers, tests
#   make lint     the first four of these       make format   fix formatting
#   make docs     build the documentation       make clean    remove what can be built again
#
# PYTHON=python3.12 chooses the interpreter, VENV=folder the environment, PIP_FLAGS="..." adds options to pip (where to
# find a CPU build of torch, say).

PYTHON ?= python3
VENV ?= .venv
PIP_FLAGS ?=
DEMO_FLAGS ?=
PYTEST_FLAGS ?= -n 2 --dist loadfile --no-loadscope-reorder

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet $(PIP_FLAGS) -c constraints.txt
INPUTS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test tests lint format docs wheel clean

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

demo: $(VENV)/.stamp-demo
	$(BIN)/opmark quickstart $(DEMO_FLAGS)

test: lint tests

tests: $(VENV)/.stamp-dev
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

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
	$(BIN)/python -m opmark.leaderboards.scoring.compilation
	@touch $@

$(VENV)/.stamp-dev: $(INPUTS) | $(BIN)/python
	$(PIP) -e '.[dev,docs,meta,models,sandbox,solvers]'
	@touch $@ $(VENV)/.stamp-demo
