# The one door: every target works on a fresh clone with Python 3.11+, make and git.
.DEFAULT_GOAL := help
.PHONY: help run test system costs check bench fuzz faults simulate chaos attack holes docs catalogs screenshots lock changelog clients wheels sbom package-check image-check clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DISTRIBUTIONS := platform $(sort $(wildcard plugins/*)) $(wildcard tools/*) clients/python
INSTALLED := $(VENV)/installed
DEVELOPED := $(VENV)/developed
NODE_TOOLS := clients/typescript/node_modules/.package-lock.json

# Where Python is told to keep no bytecode, each of the processes that we start would compile for four seconds.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 15

# uv installs in seconds what takes pip a minute; where uv cannot be had, pip does it. Nothing is compiled beforehand: that
# takes longer than all the rest, and Python does it as it imports. The locks are complete, so nothing is resolved.
INSTALL = $(BIN)/uv pip install --python $(BIN)/python
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
$(INSTALLED): requirements.lock $(addsuffix /pyproject.toml,$(DISTRIBUTIONS))
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Switchboard needs Python 3.11 or newer, found " + sys.version.split()[0])'
	@test -x $(BIN)/python || { echo "Creating $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock | $(PIP) --no-deps --require-hashes -r /dev/stdin || echo "uv cannot be had; pip installs."
	@echo "Installing what Switchboard needs to run ..."
	@$(call install,--no-deps --require-hashes -r requirements.lock)
	@$(call install,--no-deps --no-build-isolation $(addprefix -e ./,$(DISTRIBUTIONS)))
	@touch $@

$(DEVELOPED): $(INSTALLED) requirements-dev.lock
	@echo "Installing the tools of the tests ..."
	@$(call install,--no-deps --require-hashes -r requirements-dev.lock)
	@touch $@

$(NODE_TOOLS): clients/typescript/package-lock.json
	@npm ci --prefix clients/typescript --no-audit --no-fund --loglevel=error
	@touch $@

# $(call install,ARGUMENTS): by uv, or by pip.
install = if [ -x $(BIN)/uv ] && $(INSTALL) $(1); then :; else $(PIP) $(1); fi

run: $(INSTALLED) ## start everything in the foreground, seeded with a demo organization
	@exec $(BIN)/switchboard run

check: $(DEVELOPED) ## linters and type checker
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# The checks run beside them.
PROCESSES ?= logical
TESTS = $(BIN)/python -m pytest $(TEST_OPTIONS) --ignore tests/chaos --ignore tests/fuzz --ignore tests/attack/test_planted_holes.py \
	--ignore tests/interleavings/test_planted_defects.py
PARALLEL_TESTS = $(TESTS) --numprocesses $(PROCESSES) --dist worksteal
test: $(DEVELOPED) ## linters, type checker, and the tests of the platform in one process beside PostgreSQL, Redis, and Chromium
	@$(MAKE) --no-print-directory $(NODE_TOOLS) || echo "The TypeScript client is not tested: its tools need npm and its registry."
	@nice $(MAKE) --no-print-directory check & checks=$$!; \
	$(PARALLEL_TESTS) -m "not system and not real_time"; tests=$$?; \
	$(TESTS) -m "real_time and not system" $$(grep -lr --include="test_*.py" real_time tests plugins); alone=$$?; \
	wait $$checks && [ $$tests = 0 ] && exit $$alone

system: $(DEVELOPED) ## the tests that start servers, workers, clusters, or installers, kill processes, or restore backups
	$(PARALLEL_TESTS) -m system

costs: ## run make test, and print what it costs by program, folder, module, fixture, and mark; TARGET=system
	@$(MAKE) --no-print-directory $(or $(TARGET),test) TEST_OPTIONS="-p tests.fixtures.costs"; status=$$?; \
	echo "Processor time of all (user, system), the second line with the programs that were started:"; times; exit $$status

bench: $(DEVELOPED) ## the benchmarks as tables; NAME=calls runs one
	$(BIN)/python -m bench $(NAME)

fuzz: $(DEVELOPED) ## requests made from the OpenAPI document; EXAMPLES=5000 for longer
	FUZZ_EXAMPLES=$(or $(EXAMPLES),500) $(BIN)/python -m pytest tests/fuzz -s

faults: $(DEVELOPED) ## processes killed under load; SCALE=20 for longer
	FAULT_SCALE=$(or $(SCALE),5) $(BIN)/python -m pytest tests/faults

simulate: $(DEVELOPED) ## background work in orders and with faults that seeds choose; SEEDS=10000 for more, SEED=123 plays one and prints its trace
	$(if $(SEED),SIMULATION_SEED=$(SEED),SIMULATION_SEEDS=$(or $(SEEDS),1000)) $(BIN)/python -m pytest tests/interleavings/test_seeds.py \
		$(if $(SEED),-s -k one_seed,--numprocesses $(PROCESSES) --dist worksteal)

chaos: $(DEVELOPED) ## restarts, failovers, and faults behind haproxy while people talk; CALLERS=50 ROUNDS=20 FAULTS=200
	CHAOS_CALLERS=$(or $(CALLERS),50) CHAOS_ROUNDS=$(or $(ROUNDS),20) CHAOS_FAULTS=$(or $(FAULTS),200) \
		$(BIN)/python -m pytest tests/chaos -s

attack: $(DEVELOPED) ## the penetration test on an instance of its own; URL=… CREDENTIALS=FILE attacks another, NAME=oauth runs one
	@$(BIN)/python -m tests.attack $(if $(URL),--url $(URL)) $(if $(CREDENTIALS),--credentials $(CREDENTIALS)) $(NAME)

holes: $(DEVELOPED) ## an instance with a hole for each attack, and defects of the past for make simulate, which they must find
	$(BIN)/python -m pytest tests/attack/test_planted_holes.py
	$(BIN)/python -m pytest tests/interleavings/test_planted_defects.py --numprocesses $(PROCESSES) --dist worksteal

docs: $(DEVELOPED) ## write the generated pages of docs/ anew
	$(BIN)/switchboard docs

clients: $(DEVELOPED) $(NODE_TOOLS) ## generate the typed clients from the OpenAPI document; needs Node.js
	$(BIN)/python -m clients.generator

catalogs: $(DEVELOPED) ## extract the messages of the dashboard and of plugins, and update the catalogs of translations
	$(BIN)/python -m tests.languages.catalogs

screenshots: $(DEVELOPED) ## make the pictures of docs/screenshots anew; needs Chromium
	$(BIN)/python -m tests.dashboard.screenshots docs/screenshots

# For every platform at once. Releases younger than a week are left out: most malicious ones are found by then.
PIN = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
	--exclude-newer "$$(date -u -d '7 days ago' +%F)"
OWN := switchboard-voice switchboard-voice-client $(subst _,-,$(addprefix switchboard-voice-,$(notdir $(wildcard plugins/* tools/*))))
lock: $(INSTALLED) ## pin requirements.in and requirements-dev.in anew
	$(PIN) requirements.in $(foreach p,$(OWN),--no-emit-package $(p)) -o requirements.lock
	$(PIN) requirements-dev.in $$(sed -n 's/^\([a-z0-9._-]*\)==.*/--no-emit-package \1/p' requirements.lock) -o requirements-dev.lock
	-$(BIN)/python -m switchboard_llm

changelog: $(DEVELOPED) ## write the entries of changes/ into CHANGELOG.md, and remove their files; VERSION=0.2.0
	@test -n "$(VERSION)" || { echo "Name the version: make changelog VERSION=0.2.0"; exit 2; }
	$(BIN)/towncrier build --yes --version $(VERSION)

# Each wheel carries the license, and the platform's the guides, to which it has a link. flit takes only files that are in the
# folder of its source, so it builds from a copy.
# The time of the last commit is the time of every file in a wheel, so that the same commit makes the same bytes.
wheels: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
wheels: $(INSTALLED) ## every distribution as a wheel in dist/, the same bytes from the same commit
	@rm -f dist/*.whl
	@for source in $(DISTRIBUTIONS); do \
		copy=$$(mktemp -d) && cp -RLp $$source/. LICENSE $$copy && $(BIN)/python -m flit_core.wheel --outdir dist $$copy \
			&& rm -r $$copy || exit 1; \
	done

sbom: $(DEVELOPED) ## what is installed beside our wheels, as CycloneDX in dist/switchboard.cdx.json
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements --output-reproducible --pyproject platform/pyproject.toml -o dist/switchboard.cdx.json requirements.lock

package-check: $(DEVELOPED) wheels sbom ## install and run the wheels outside of the repository, check the files of deploy/; minutes
	$(BIN)/python -m pytest deploy/checks

image-check: ## build the image without a registry, and run its program; needs root, buildah, and debootstrap; minutes
	deploy/checks/build_image.sh

clean: ## remove what the other targets made; data stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
