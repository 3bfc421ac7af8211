# The one door: every target works on a fresh clone with Python 3.11+, make and git.
.DEFAULT_GOAL := help
.PHONY: help run test check bench fuzz faults docs screenshots lock clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DISTRIBUTIONS := platform $(sort $(wildcard plugins/*))
INSTALLED := $(VENV)/installed

# Where Python is told to keep no bytecode, each of the processes that we start would compile for four seconds.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):[^#]*## /\1\t/' | expand -t 10

# Nothing is compiled beforehand: that takes longer than all the rest, and Python does it as it imports.
# The lock is complete, so nothing is resolved; a package's needs that we leave out stay out (see requirements.overrides).
$(INSTALLED): requirements.lock $(addsuffix /pyproject.toml,$(DISTRIBUTIONS))
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Switchboard needs Python 3.11 or newer, found " + sys.version.split()[0])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation $(addprefix -e ./,$(DISTRIBUTIONS))
	@touch $@

run: $(INSTALLED) ## start everything in the foreground, seeded with a demo organization
	@exec $(BIN)/switchboard run

check: $(INSTALLED) ## linters and type checker
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# Four processes on two cores too: most of a test's time is spent waiting, for calls in real time.
test: check ## linters, type checker and every test
	$(BIN)/python -m pytest --numprocesses 4 --dist worksteal

bench: $(INSTALLED) ## the benchmarks as tables; NAME=calls runs one
	$(BIN)/python -m bench $(NAME)

fuzz: $(INSTALLED) ## requests made from the OpenAPI document; EXAMPLES=5000 for longer
	FUZZ_EXAMPLES=$(or $(EXAMPLES),500) $(BIN)/python -m pytest tests/fuzz -s

faults: $(INSTALLED) ## processes killed under load; SCALE=20 for longer
	FAULT_SCALE=$(or $(SCALE),5) $(BIN)/python -m pytest tests/faults

docs: $(INSTALLED) ## write the generated pages of docs/ anew
	$(BIN)/switchboard docs

screenshots: $(INSTALLED) ## make the pictures of docs/screenshots anew; needs Chromium
	$(BIN)/python -m tests.dashboard.screenshots docs/screenshots

# UV is a resolver that can pin for every platform at once; only whoever relocks needs it (pip install uv).
# Releases younger than a week are left out: most malicious ones are found by then.
UV ?= uv
lock: ## pin requirements.in anew
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--exclude-newer "$$(date -u -d '7 days ago' +%F)" --override requirements.overrides requirements.in \
		$(foreach p,voice $(subst _,-,$(addprefix voice-,$(notdir $(wildcard plugins/*)))),--no-emit-package switchboard-$(p)) \
		$(foreach p,$(UNUSED),--no-emit-package $(p)) -o requirements.lock

# What only the overridden sentence-transformers would bring.
UNUSED := sentence-transformers torch transformers annotated-doc cloudpickle joblib mpmath narwhals networkx scikit-learn scipy \
	shellingham sympy typer

clean: ## remove what the other targets made; data stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
