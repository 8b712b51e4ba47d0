# Everything a developer runs. A fresh Debian machine needs only python3 (3.11), pip and make.
# The virtual environment is made without ensurepip, which Debian packs apart; the pip of the
# machine installs into it. So the first python3 with pip is taken: where .venv/bin leads the PATH,
# its own python3 is not the one.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

HAS_PIP := import importlib.util, sys; sys.exit(sys.version_info < (3, 11) or importlib.util.find_spec("pip") is None)
PYTHON ?= $(or $(shell for each in $$(type -ap python3 python3.13 python3.12 python3.11); do \
  if $$each -c '$(HAS_PIP)' 2>/dev/null; then echo $$each; break; fi; done),python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check --no-input --quiet

# One stamp for the locked packages, one for the project itself.
LOCKED := $(VENV)/.locked
READY := $(VENV)/.ready

# Tests multiply thousands of small matrices, for which threads cost more than they bring.
ONE_THREAD := OPENBLAS_NUM_THREADS=1

.PHONY: help setup demo test promises check fix bench paper docs lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY) ## make .venv with the locked packages and the project

$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "labelfree needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m pip --version >/dev/null || { echo "labelfree needs a Python with pip: install python3-pip, or make PYTHON=/path/to/python3" >&2; exit 2; }
	@test ! -L $(VENV) || { echo "$(VENV) is a link to another environment, which setting up would empty: remove the link" >&2; exit 2; }
	@echo "setting up $(VENV) (once for each lock; a few minutes on a slow line)"
	@$(PYTHON) -m venv --clear --without-pip $(VENV)
	@$(PIP) install --progress-bar off --require-hashes -r requirements.lock
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## grade the ten classifiers of the example, and compare with the truth
	@$(BIN)/labelfree demo

test: $(READY) ## run the tests
	@$(ONE_THREAD) $(BIN)/python -m pytest -q

promises: $(READY) ## run the statistical promises at full length
	@$(ONE_THREAD) LABELFREE_PROMISES=full $(BIN)/python -m pytest -q tests/promises

check: $(READY) ## lint, format and types; changes no source
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

fix: $(READY) ## repair what ruff can repair; write the generated parts of the docs anew
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format
	@$(BIN)/python docs/write_command_line.py

bench: $(READY) ## measure speed and memory
	@$(BIN)/python benchmarks/run.py

# QUICK=1 runs a short form, into paper/quick. ARGS are those of `python -m paper --help`.
paper: $(READY) ## run the source paper's experiments; QUICK=1 for a short run
	@$(BIN)/python -m paper $(if $(QUICK),--quick) $(ARGS)

docs: $(READY) ## build the documentation; a warning is an error
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Needs uv (https://docs.astral.sh/uv). It stays out of the lock, as only this target uses it.
# For newer releases of everything: make lock LOCK_FLAGS=--upgrade
lock: ## write requirements.lock anew from pyproject.toml (needs uv)
	@command -v uv >/dev/null || { echo "make lock needs uv: install it with pip, outside $(VENV)" >&2; exit 2; }
	@uv pip compile pyproject.toml --extra report --extra sklearn --extra spark --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet \
	  $(LOCK_FLAGS) --output-file requirements.lock
	@{ echo "# The exact packages of the development environment: runtime, all extras, group dev."; \
	   echo "# Written by 'make lock' from pyproject.toml; do not edit by hand."; \
	   cat requirements.lock; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock

clean: ## remove .venv and everything that was made
	rm -rf $(VENV) build dist docs/_build paper/quick .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
