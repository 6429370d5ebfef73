# Everything happens in .venv, which the first target makes; PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
RUNTIME := .venv/.runtime
STAMP := .venv/.dev

.PHONY: demo test lint types layers migrations unit format clean

demo: $(RUNTIME)
	$(BIN)/python examples/demo.py

test: lint types layers migrations unit

$(RUNTIME): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $(RUNTIME)

$(STAMP): $(RUNTIME)
	$(PIP) --editable '.[dev]'
	touch $(STAMP)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

migrations: $(STAMP)
	rm -rf build/schema.db
	$(BIN)/alembic upgrade head
	$(BIN)/alembic check

# The docs are checked by tests: snippets run, references are compared with the code.
unit: $(STAMP)
	$(BIN)/pytest -n 2

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist .demo
