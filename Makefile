# Two commands matter: `make report` (the main job) and `make test`. Both set up a virtual environment of their own first.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

export OMP_NUM_THREADS ?= 1
export PYTHONHASHSEED ?= 0
export PYTHONDONTWRITEBYTECODE :=  # some containers set it: every worker and child would compile all modules again
TESTS  := not stat and not coq and not text
# Of the shell that asks only where programs are and files may be written: a variable or a function of it could have
# bash, Python, make or pytest leave something out, or run something else.
ALONE  = /usr/bin/env -i PATH="$$PATH" HOME="$$HOME" TMPDIR="$${TMPDIR:-/tmp}" LANG=C.UTF-8 JOBS="$${JOBS:-2}" \
         PYTHONNOUSERSITE=1 PYTHONHASHSEED=0 OMP_NUM_THREADS=1

.PHONY: report report-full records test test-full wheel docs stat bench gpu prove lint mutation coverage clean

report: $(READY)            ## the correctness report: out/report.html, out/report.json
	$(BIN)/refengine report --out out

report-full: $(READY)       ## the long report: everything that is on record runs again, every policy in every cell too
	$(BIN)/refengine report --full --out out/full

records: $(READY)           ## make again every committed record that is stale; resumes (RECORDS="findings" for one alone)
	$(BIN)/python -m refengine.selfcheck.records $(RECORDS)

test: $(READY)              ## the tests; where nothing has changed since all cases of a dear one passed, a sample of them
	$(BIN)/python -m pytest -n 2 --dist worksteal --drawn -m "$(TESTS)"

test-full: $(READY)         ## the tests, every case of every one
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "$(TESTS)"

docs: $(READY)              ## the site of all pages, with one of each rule, drafter and module: build/site (needs the extra `docs`)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --site-dir build/site

wheel: $(READY)             ## build the wheel, install it in an environment of its own, run every command in an empty folder
	bash .ci/wheel.sh $(abspath $(BIN))/python

stat: $(READY)              ## large samples: every test states n, alpha and the TV it would detect
	$(BIN)/python -m pytest -n 2 -m stat statistical_tests

bench: $(READY)             ## speed, in ten minutes: peers, growth of cost, exact laws, detection; out/bench.html, out/bench.json
	$(BIN)/python -m benchmarks.all --out out

gpu: $(READY)               ## what needs a CUDA device, 8 minutes: figures go to benchmarks/results/gpu.json
	$(BIN)/python benchmarks/gpu.py

prove: $(READY)             ## the machine-checked proofs (needs coq; says what to install), and engine = exact on z3's terms
	$(ALONE) bash proofs/check.sh
	$(ALONE) $(BIN)/python -m pytest -n 2 --dist worksteal --nothing-skipped -m "long or coq or text" proofs

lint: $(READY)              ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

mutation: $(READY)          ## mutate every comparison, clamp, index and prefix rule; list the survivors
	$(BIN)/python -m refengine.bugs.mutation.run

coverage: $(READY)
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report

$(READY): pyproject.toml constraints.txt
	@echo "refengine: setting up $(VENV) (once; torch and transformers are large)"
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "refengine needs Python 3.11 or newer, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[dev,docs,fast]'
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib || true  # on all cores; pip compiles on one
	@touch $@

clean:
	rm -rf $(VENV) out build .pytest_cache .mypy_cache .ruff_cache .hypothesis
