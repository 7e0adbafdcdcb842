# Plain commands under short names; README.md shows the same ones written out.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
CORES ?= 2
BIN := .venv/bin

.PHONY: demo test lint bench clean

demo: .venv/demo.stamp  ## a small real reproduction; ends with the path of its report
	$(BIN)/snakemake all --cores $(CORES) --config scale=demo papers=simcse

test: .venv/dev.stamp  ## lint, types, and all tests
	$(MAKE) lint
	$(BIN)/python -m pytest

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint --config scale=demo

bench: .venv/dev.stamp  ## side by side with peers; see docs/measured.md
	$(BIN)/python -m bench

clean:  ## results of the demo; fetched data stay
	rm -rf results/demo

.venv/%.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[$*]" --constraint constraints.txt
	touch $@
