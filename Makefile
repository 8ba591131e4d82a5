# Needs python3 (3.11 or newer) and make; everything else goes into .venv/.
# Another interpreter: make PYTHON=python3.13 test

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
SPEC := recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml
DEMO := build/demo
CC2560 := 4xtp2dep4-1xtp4dep4-cc2560.yaml

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help venv recipes test test-faults test-slurm e2e demo lint types layers pytest bench rack \
  rack-down clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(INSTALLED) ## create .venv with pdrecipe and the tools of this file (once)

# `.installed` is written last, so an interrupted installation goes on at the next call.
$(INSTALLED): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make: no $(PYTHON) on PATH; name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $$($(PYTHON) --version 2>&1) is too old, pdrecipe needs 3.11 or newer;" \
	    "name one: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: $(PYTHON) cannot create environments, its ensurepip or venv module is missing;" \
	    "on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "==> creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@echo "==> installing pdrecipe and its tools into $(VENV) (once, about half a minute)"
	@$(BIN)/python -m pip install --disable-pip-version-check --no-input --editable '.[dev]'
	@touch $@

recipes: $(INSTALLED) ## render the Qwen3.8 recipes in both dialects and print the capacity table
	@echo "==> recipes of $(SPEC), srt-slurm v2"
	@$(BIN)/pdrecipe generate $(SPEC) --dialect v2
	@echo "==> recipes of $(SPEC), srt-slurm v1"
	@$(BIN)/pdrecipe generate $(SPEC) --dialect v1
	@echo "==> capacity of $(SPEC)"
	@$(BIN)/pdrecipe capacity $(SPEC)

test: lint types layers pytest ## what every change must pass

lint: $(INSTALLED) ## ruff: rules and formatting
	@echo "==> ruff check"
	@$(BIN)/ruff check
	@echo "==> ruff format --check"
	@$(BIN)/ruff format --check

types: $(INSTALLED) ## mypy, strict
	@echo "==> mypy"
	@$(BIN)/mypy

layers: $(INSTALLED) ## import-linter: the layers of pyproject.toml
	@echo "==> lint-imports"
	@$(BIN)/lint-imports --no-logo

pytest: $(INSTALLED) ## the tests alone
	@echo "==> pytest"
	@$(BIN)/python -m pytest

test-faults: $(INSTALLED) ## a real Slurm that breaks (14 min; Debian, root)
	@echo "==> pytest -m faults"
	@$(BIN)/python -m pytest -v -m faults tests

test-slurm: $(INSTALLED) ## all tests on a real Slurm: those of both (15 min; Debian, root)
	@echo "==> pytest -m slurm"
	@$(BIN)/python -m pytest -v -m slurm tests

e2e: $(INSTALLED) ## rehearsals through Slurm to the frontier: real Dynamo, AIPerf (Debian, root)
	@echo "==> pytest -m e2e"
	@$(BIN)/python -m pytest -m e2e tests

# One --scale for all, so that their points stand on one frontier.
demo: $(INSTALLED) ## without GPUs: recipes, their rehearsals, the frontier (15 min; speeds simulated)
	@echo "==> recipes of $(SPEC)"
	@$(BIN)/pdrecipe generate $(SPEC) --out $(DEMO)/recipes
	@echo "==> Dynamo and AIPerf, in environments of their own (once)"
	@$(BIN)/pdrecipe rehearse --setup
	@echo "==> the article's deployment at 90 % of its KV capacity, and half as much again as it holds"
	@$(BIN)/pdrecipe rehearse $(DEMO)/recipes/$(CC2560) --concurrency 90%,150% --out $(DEMO)/cc2560 \
	  || test $$? -eq 10
	@echo "==> six deployments at their own concurrencies"
	@$(BIN)/pdrecipe submit $(DEMO)/recipes/*dep4-*.yaml --sweep $(DEMO)/sweep --cluster local \
	  --launcher rehearse --scale 32 --max-parallel 1 --no-canary --yes
	@$(BIN)/pdrecipe status --sweep $(DEMO)/sweep --watch
	@echo "==> figures"
	@$(BIN)/pdrecipe collect $(DEMO)/sweep --out $(DEMO)/results.jsonl
	@$(BIN)/pdrecipe pareto $(DEMO)/results.jsonl --out $(DEMO)/frontier.svg
	@$(BIN)/pdrecipe report $(DEMO)/results.jsonl $(SPEC) --out $(DEMO)/report.html
	@echo "==> simulated engines, no speed was measured: $(DEMO)/cc2560/rehearsal.svg," \
	  "$(DEMO)/frontier.svg, $(DEMO)/report.html"

rack: ## a real Slurm with 18 virtual GB300 nodes on this machine (Debian, root)
	@$(PYTHON) -m tests.rack up
	@echo 'now: eval "$$($(PYTHON) -m tests.rack env)"'

rack-down: ## stop that Slurm and delete its files
	@$(PYTHON) -m tests.rack clean

bench: $(INSTALLED) ## how long capacity, checks, diffs, collecting, frontiers and plans take
	@echo "==> bench"
	@$(BIN)/python tests/bench/capacity_bench.py
	@$(BIN)/python tests/bench/check_bench.py
	@$(BIN)/python tests/bench/collect_bench.py
	@$(BIN)/python tests/bench/results_bench.py
	@$(BIN)/python tests/bench/plan_bench.py

clean: ## remove .venv, caches and build results
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find generator tests -name __pycache__ -type d -prune -exec rm -rf {} +
