# Everything runs in a virtual environment that these targets make by themselves: .venv
# Outside of it, as root on Debian, scripts/system-libraries installs what drawing, the tests' browser and their database server
# need, and says so before. To refuse: SYSTEM_PACKAGES=no make setup
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
TORCH ?= 2.6.0
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Python compiles what it imports; to compile all 26,000 files takes 40 seconds.
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile

# One thread per process: two trainings with one thread each finish sooner than two in turn with two.
export OMP_NUM_THREADS ?= 1

.PHONY: help setup quickstart test system-for-tests test-slow test-oldest lint bench docs data results gallery dist clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(INSTALLED)  ## Install everything into .venv

# torch comes first and by exact version: a plain range may bring gigabytes of CUDA packages onto a machine without a GPU.
$(INSTALLED): pyproject.toml constraints.txt scripts/system-libraries
	@scripts/system-libraries drawing
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) $$(grep '^torch==' constraints.txt)
	$(PIP_INSTALL) --constraint constraints.txt --editable '.[dev]'
	$(PIP_INSTALL) --constraint constraints.txt --no-deps dm_control
	@echo 'Compiling updates (once, about 20 seconds)'
	@$(BIN)/python -c 'from a2ls import recorder; recorder.prepare()'
	@touch $@

quickstart: $(INSTALLED)  ## A small search of some minutes, from random losses to the best one found
	@$(BIN)/a2ls quickstart

# One core checks while the other one waits for downloads.
test: $(INSTALLED)  ## Lint, type-check and test (minutes)
	@$(MAKE) --no-print-directory --jobs=2 lint system-for-tests
	$(BIN)/pytest --numprocesses=2 --dist=loadgroup

test-slow: $(INSTALLED)  ## The tests that take many minutes
	$(BIN)/pytest --numprocesses=2 --dist=loadgroup -m slow

test-oldest:  ## Train with the oldest versions that pyproject.toml allows, in .venv-oldest; TORCH=2.7.0 for another PyTorch
	@scripts/test-oldest $(PYTHON) $(TORCH)

system-for-tests:
	@scripts/system-libraries browser
	@scripts/system-libraries server

lint: $(INSTALLED)  ## Style, types and the one-way imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(INSTALLED)  ## Speed of the update, beside Stable-Baselines3 and the machine's matrix products
	$(BIN)/python benchmarks/update_speed.py

docs: $(INSTALLED)  ## Build the documentation site into build/docs; a warning is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html docs build/docs
	@echo 'Open build/docs/index.html'

data: $(INSTALLED)  ## Write the data set of all trainings in docs/results anew, and the counts of docs/data.md
	$(BIN)/python scripts/data_set.py

results: $(INSTALLED)  ## Write the tables of docs/results.md anew, from the trainings in docs/results
	$(BIN)/python scripts/results.py

gallery: $(INSTALLED)  ## Draw the figures of docs/gallery.md anew, and write its text (minutes)
	@scripts/system-libraries browser
	$(BIN)/python scripts/gallery.py

dist: $(INSTALLED)  ## Build the package into dist/: sdist and wheel
	$(BIN)/python -m build --outdir dist .

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) .venv-oldest .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
