# Every target sets up what it needs; only the first set-up needs the network. See scripts/setup.py.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup roomy demo test unit spark integration check lint bench package clean

help: ## Show this help
	@echo "Headroom watches Kafka during live partition reassignments. Start with: make demo"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Needs Python 3.10 or newer (another than python3: make PYTHON=python3.12 ...) and Java 17 or newer."

setup: ## Create .venv and fetch the jars into .jars, once
	@$(PYTHON) scripts/setup.py

roomy:
	@$(PYTHON) scripts/setup.py --spark

demo: roomy ## See a throttled move fail and recover, on real brokers (about three minutes)
	@$(BIN)/headroom demo

test: unit spark integration ## Run all tests

unit: setup ## Run the tests that need no JVM
	$(BIN)/python -m pytest tests/unit -n auto

spark: roomy ## Run the tests that need Spark, in two workers with a session each
	$(BIN)/python -m pytest tests/spark -n 2

integration: roomy ## Run the tests that need real brokers
	$(BIN)/python -m pytest tests/integration -m "not alone" -n 3 --dist loadfile
	$(BIN)/python -m pytest tests/integration -m alone

check: lint test ## Lint, types and all tests: what CI runs

lint: setup ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: roomy ## Measure and write benchmarks/results.json; ONLY=NAME runs one group
	$(BIN)/python -m benchmarks.run $(if $(ONLY),--only $(ONLY))

package: setup ## Put what spark-submit needs into build/submit: Headroom, its entry and the jars
	@$(BIN)/python scripts/package.py

clean: ## Remove .venv, .jars and all caches
	rm -rf .venv .jars .tools build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
