# Everything a fresh machine needs: python3, make and the package index.
#   make demo    a model, its certificate and a picture, in a minute
#   make test    lint and all tests
#   make docs    the documentation site, in site/
#   make bench   the benchmark tables (some hours; needs the shared data sets)

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint docs bench clean

demo: $(VENV)/.installed-plot
	$(BIN)/widemargin demo

test: $(VENV)/.installed-test lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The theme's notice about its successor is no warning of ours.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.reading
	$(BIN)/python -m benchmarks.linear_dual
	$(BIN)/python -m benchmarks.linear
	$(BIN)/python -m benchmarks.defaults
	$(BIN)/python -m benchmarks.kernel
	$(BIN)/python -m benchmarks.cutting_planes
	$(BIN)/python -m benchmarks.grid

# One marker per set of extras; installing again is cheap and only happens when pyproject.toml changed.
$(VENV)/.installed-%: pyproject.toml | $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

$(VENV):
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "widemargin needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) demo site .pytest_cache .ruff_cache .hypothesis
