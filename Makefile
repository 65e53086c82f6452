# Two commands do all set-up: `make demo` and `make test`.
PYTHON ?= python3
BIN = .venv/bin
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint verify bench clean

demo: .venv/installed
	@mkdir -p demo
	@$(BIN)/assay audit --json demo/audit.json
	@$(BIN)/assay compare --json demo/compare.json
	@echo "All numbers of the two tables are in demo/audit.json and demo/compare.json."

test: .venv/installed-dev lint
	$(BIN)/pytest -n 2

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The long simulations, and the frozen values of other libraries computed anew.
verify: .venv/installed-dev .venv-bench/installed
	$(BIN)/pytest -n 2 -m long
	.venv-bench/bin/python benchmarks/frozen_values.py --check

# How fast, as ratios against the other libraries in the same run.
bench: .venv-bench/installed
	.venv-bench/bin/python benchmarks/measure.py; measured=$$?; \
	.venv-bench/bin/python benchmarks/correct.py; exit $$(( measured + $$? ))

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) -e .
	@touch $@

.venv/installed-dev: .venv/installed
	$(INSTALL) -e '.[dev]'
	@touch $@

.venv-bench/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

clean:
	rm -rf .venv .venv-bench demo
