# Needs Python >= 3.11 and make; everything else is installed into .venv by the target that wants it.
#
#   make run     the two example programs through NumPy and through lazynp, with a table
#   make test    lint, types, tests; machine code that the tests compile stays in .pytest_cache, so the second time takes a fraction
#   make quick   a tour of the tests: without those marked slow, and of each table some rows; it ends with what it left out
#   make test-cuda-emulated   the tests of the CUDA backend without a GPU: needs g++, and installs NVRTC
#   make test-gpu   the tests that run on a real GPU; make bench-gpu its benchmarks; tools/first_light.sh does both where nothing can be installed
#   make bench   the benchmarks against NumPy and the peers that are installed
#   make conformance   the official tests of the array API standard; CONFORMANCE_ARGS="--suite PATH" names a checkout
#   make sklearn   scikit-learn's array-API tests on lazynp, compared with the recorded results
#   make scipy   a fixed choice of SciPy's array-API tests on lazynp, likewise
#   VARIANT="LAZYNP_TIER=compiled LAZYNP_THREADS=1" with test, pytest or quick runs them with these environment variables
#   make sanitize   the native core under gcc's address and undefined-behaviour sanitizers: tests of arrays, and random programs with hostile hooks
#   make clean   remove .venv and caches
#   make help    this list

VENV := .venv
PY := $(VENV)/bin/python
PYTEST_ARGS ?=
VARIANT ?=
PYTEST := $(PY) -m pytest -n auto --dist worksteal
CONFORMANCE_ARGS ?=

# the first interpreter that is new enough; `make PYTHON=/path/to/python3` chooses another
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then command -v $$p; break; fi; done)

.PHONY: help run test quick lint types pytest test-cuda-emulated test-gpu g++ bench bench-gpu conformance sklearn scipy sanitize clean
.DEFAULT_GOAL := test

help:
	@sed -n 's/^#   //p' $(MAKEFILE_LIST)

run: $(VENV)/.examples
	$(PY) examples/run.py

test: lint types pytest

lint: $(VENV)/.dev
	$(PY) -m ruff check .

types: $(VENV)/.dev
	$(PY) -m mypy

pytest: $(VENV)/.dev
	$(VARIANT) $(PYTEST) $(PYTEST_ARGS)

quick: $(VENV)/.dev
	$(VARIANT) $(PYTEST) -m "not slow" --rows 12 $(PYTEST_ARGS)

test-cuda-emulated: g++ $(VENV)/.cuda-test
	LAZYNP_TEST_CUDA=emulated $(PYTEST) tests/cuda tests/gpu_emulator $(PYTEST_ARGS)
	LAZYNP_TEST_CUDA=emulated LAZYNP_DEVICE=cuda LAZYNP_TIER=compiled $(PYTEST) tests/differential $(PYTEST_ARGS)

test-gpu: $(VENV)/.gpu
	$(PY) -m lazynp doctor
	LAZYNP_TEST_CUDA=gpu LAZYNP_DEVICE=cuda LAZYNP_TIER=compiled $(PY) -m pytest tests/cuda/test_standard.py tests/differential $(PYTEST_ARGS)
	LAZYNP_TEST_CUDA=gpu $(PY) -m pytest $(addprefix tests/cuda/test_,hardware.py host.py devices.py writes.py accumulating.py composed.py) $(PYTEST_ARGS)
	if command -v compute-sanitizer >/dev/null; then \
		LAZYNP_DEVICE=cuda LAZYNP_TIER=compiled compute-sanitizer --error-exitcode 1 $(PY) -m tests.cuda.standard && \
		LAZYNP_DEVICE=cuda LAZYNP_TIER=compiled compute-sanitizer --tool racecheck --error-exitcode 1 $(PY) -m tests.cuda.standard; \
	else echo "compute-sanitizer is not installed: not run"; fi

bench-gpu: $(VENV)/.gpu
	$(PY) -m bench.gpu

g++:
	@command -v "$${CXX:-g++}" >/dev/null || { echo "the CUDA emulator needs g++ 12 or newer: apt-get install g++ (Debian, Ubuntu)," \
		"dnf install gcc-c++ (Fedora); or name it by CXX"; exit 1; }

sanitize: $(VENV)/.dev
	PYTHON=$(PY) tools/sanitize.sh

bench: $(VENV)/.bench
	$(PY) -m bench

conformance: $(VENV)/.conformance
	$(PY) -m conformance array-api $(CONFORMANCE_ARGS)

sklearn: $(VENV)/.test $(VENV)/.conformance
	$(PY) -m conformance sklearn --check $(CONFORMANCE_ARGS)

scipy: $(VENV)/.test $(VENV)/.conformance
	$(PY) -m conformance scipy --slice ci $(CONFORMANCE_ARGS)

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "lazynp needs Python 3.11 or newer; none was found on PATH"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

# what the native core is built from
CORE := setup.py $(wildcard lazynp/*/*.pyx lazynp/*/*.h lazynp/*/*/*.pyx lazynp/*/*/*.h)

# one stamp per extra: an environment that has what pyproject.toml asks for, and the core as it is, is not looked at again
$(VENV)/.%: pyproject.toml $(CORE) | $(VENV)/bin/python
	$(PY) -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

.PRECIOUS: $(VENV)/.%

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist lazynp.egg-info $(foreach core,array/_core graph/_native backends/common/_launch namespace/draws/_native,$(addprefix lazynp/$(core).,c *.so *.pyd))
