# Every target sets up what it needs; only the first set-up needs the network. See scripts/setup.py.
PYTHON ?= python3
RUNS ?= 6
BIN := .venv/bin

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test check lint unit spark integration flaky bench package clean

help: ## Show this help
	@echo "Headroom watches Kafka during live partition reassignments. Start with: make demo"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Needs Python 3.10 or newer (another than python3: make PYTHON=python3.12 ...) and Java 17 or newer."

setup: ## Create .venv and fetch the jars into .jars, once
	@$(PYTHON) scripts/setup.py

demo: ## See a throttled move fail and recover, on real brokers (about three minutes)
	@$(PYTHON) scripts/setup.py spark
	@$(BIN)/headroom demo

test: ## Run lint, types and all tests, the fast ones first: what CI runs
	@$(PYTHON) scripts/run_tests.py

check: test ## The same as test

lint: ## Check style, format and types
	@$(PYTHON) scripts/run_tests.py lint types

unit: ## Run the tests that need no JVM
	@$(PYTHON) scripts/run_tests.py unit

spark: ## Run the tests that need Spark, in two processes with a session each
	@$(PYTHON) scripts/run_tests.py spark

integration: ## Run the tests that need real brokers
	@$(PYTHON) scripts/run_tests.py integration

flaky: ## Look for tests that fail by chance: RUNS=6 runs in random order, half of them beside a busy process
	@$(PYTHON) scripts/flaky.py $(RUNS)

bench: ## Measure and write benchmarks/results.json; ONLY=NAME runs one group, OPTIONS="..." with options
	@$(PYTHON) scripts/setup.py tests
	$(BIN)/python -m benchmarks.run $(ONLY) $(OPTIONS)

package: ## Put what spark-submit needs into build/submit: Headroom, its entry and the jars
	@$(PYTHON) scripts/setup.py
	@$(BIN)/python scripts/package.py

clean: ## Remove .venv, .jars and all caches
	rm -rf .venv .jars .tools build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
