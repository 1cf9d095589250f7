# Everything a fresh machine needs: python3, make and the package index. `make help` lists the targets with a comment.

PYTHON ?= python3
VENV   := .venv
OLDEST := .venv-oldest
BIN    := $(VENV)/bin

.PHONY: help demo test test-oldest test-nightly lint docs dist bench bench-quick clean

help:  ## list the targets; so does make without one
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.installed-demo  ## five machines beside scikit-learn, their certificates, a picture and a page, in a minute
	$(BIN)/widemargin demo

test: $(VENV)/.installed-test lint  ## lint and all tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-oldest: $(OLDEST)/.installed  ## all tests with the oldest versions of everything that pyproject.toml allows
	WIDEMARGIN_OLDEST=1 $(OLDEST)/bin/python -m pytest -n 2 --dist worksteal

# Loops run as plain Python are much slower: the tests whose data are small.
UNCOMPILED := $(wildcard $(addsuffix .py,$(addprefix tests/data/test_,matrix products sampling scaling summary) \
	$(addprefix tests/data/svmlight/test_,range_file parser) $(addprefix tests/kernels/test_,cache exponential functions) \
	tests/solvers/cutting_planes/test_reduced_qp)) tests/problems
COMPILED := tests/data tests/kernels tests/problems tests/solvers tests/models $(wildcard tests/certificates tests/faults)

test-nightly: $(VENV)/.installed-test  ## random examples and the long campaigns; bounds checked; uncompiled (long)
	WIDEMARGIN_NIGHTLY=1 WIDEMARGIN_HYPOTHESIS=nightly $(BIN)/python -m pytest -n 2 --dist worksteal
	NUMBA_BOUNDSCHECK=1 WIDEMARGIN_HYPOTHESIS=nightly $(BIN)/python -m pytest -n 2 --dist worksteal $(COMPILED)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(UNCOMPILED)

lint: $(VENV)/.installed-test  ## check the style of the code, and change nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The theme's notice about its successor is no warning of ours.
docs: $(VENV)/.installed-docs  ## the documentation site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# In environments of its own, from the sdist to a fit; a part of the tests from the unpacked sdist.
DIST := build/dist
dist:  ## sdist and wheel in build/dist/files, checked, installed into an empty environment and tried
	rm -rf $(DIST) && mkdir -p $(DIST)
	$(PYTHON) -m venv $(DIST)/tools && $(DIST)/tools/bin/python -m pip install --quiet --disable-pip-version-check build twine
	$(DIST)/tools/bin/python -m build --outdir $(DIST)/files
	$(DIST)/tools/bin/python -m twine check --strict $(DIST)/files/*
	$(PYTHON) -m venv $(DIST)/empty && $(DIST)/empty/bin/python -m pip install --quiet --disable-pip-version-check $(DIST)/files/*.whl
	cd $(DIST) && empty/bin/widemargin --version && empty/bin/python -c "from widemargin import SVC; print(SVC().fit([[0.0], [1.0]], [0, 1]).gap_)"
	tar -xzf $(DIST)/files/*.tar.gz -C $(DIST) && mv $(DIST)/widemargin-* $(DIST)/sources
	$(DIST)/empty/bin/python -m pip install --quiet --disable-pip-version-check "$$(echo $(DIST)/files/*.whl)[test,demo]"
	cd $(DIST) && empty/bin/widemargin demo --size 0.02 --limit 0 --output demo
	cd $(DIST)/sources && ../empty/bin/python -m pytest -q -n 2 -p no:cacheprovider tests/models/test_html_repr.py tests/problems tests/kernels

bench: $(VENV)/.installed-bench  ## every page of benchmarks/results, at most 3 hours; a run that was ended goes on
	$(BIN)/python -m benchmarks run

bench-quick: $(VENV)/.installed-bench  ## every headline ratio, at most 10 minutes, into build/benchmarks/quick
	$(BIN)/python -m benchmarks run --quick

# One marker per set of extras; installing again is cheap and only happens when pyproject.toml changed.
$(VENV)/.installed-%: pyproject.toml | $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

$(OLDEST)/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(OLDEST)
	$(PYTHON) tests/machines/oldest.py > $(OLDEST)/constraints.txt
	WIDEMARGIN_BUILD_CODE=none $(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(OLDEST)/constraints.txt \
		--editable ".[test]"
	touch $@

$(VENV):
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "widemargin needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

clean:  ## remove the environments and everything that was built
	rm -rf $(VENV) $(OLDEST) demo site .pytest_cache .ruff_cache .mypy_cache .hypothesis .numba_cache src/widemargin/_code
