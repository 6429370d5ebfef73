# Everything happens in .venv, which the first target makes; PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test lint types layers migrations unit format clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: lint types layers migrations unit

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
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
