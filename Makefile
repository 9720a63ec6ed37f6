# Everything runs in a virtual environment that these targets make by themselves: .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# One thread per process: two trainings with one thread each finish sooner than two in turn with two.
export OMP_NUM_THREADS ?= 1

.PHONY: help setup quickstart test test-slow lint bench clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(INSTALLED)  ## Install everything into .venv

# torch comes first and by exact version: a plain range may bring gigabytes of CUDA packages onto a machine without a GPU.
$(INSTALLED): pyproject.toml constraints.txt scripts/system-libraries
	@scripts/system-libraries drawing
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check $$(grep '^torch==' constraints.txt)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@echo 'Compiling updates (once, about 20 seconds)'
	@$(BIN)/python -c 'from a2ls import recorder; recorder.prepare()'
	@touch $@

quickstart: $(INSTALLED)  ## A small search of some minutes, from random losses to the best one found
	@$(BIN)/a2ls quickstart

test: $(INSTALLED) lint  ## Lint, type-check and test (minutes)
	@scripts/system-libraries browser
	$(BIN)/pytest --numprocesses=2

test-slow: $(INSTALLED)  ## The tests that take many minutes
	$(BIN)/pytest --numprocesses=2 -m slow

lint: $(INSTALLED)  ## Style, types and the one-way imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(INSTALLED)  ## Speed of the update, beside Stable-Baselines3 and the machine's matrix products
	$(BIN)/python benchmarks/update_speed.py

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
