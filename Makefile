# Everything a newcomer needs; each target makes the virtual environment itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test e2e check lock bench clean

demo: $(READY)
	@$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/python -m pytest

# Needs Docker and root; act is installed beside the other tools.
e2e: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest tests/e2e

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/actionlint
	$(BIN)/zizmor --quiet --offline --no-progress .

# What the action's image installs; run it after a change of the dependencies, and from time to time.
lock: $(READY)
	$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.13 --no-annotate --no-header \
		--group container pyproject.toml --output-file requirements.lock

bench: $(READY)
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

# The examples' own requirements are installed beside ours only here, for the tests that run them.
$(READY): pyproject.toml examples/building_faq/requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; name one with: make PYTHON=python3.x")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev \
		--requirement examples/building_faq/requirements.txt
	@touch $@
