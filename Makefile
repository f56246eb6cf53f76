# Needs Python >= 3.11 and make; everything else lands in .venv, from hash-pinned versions.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(BIN)/uv
READY  := $(VENV)/.installed
UV_VERSION := 0.13.9

# Compiled modules are kept, beside the packages they come from. Where the environment forbids that, each of the hundreds
# of processes that the tests start would compile all of pandas and kubernetes again, seconds of CPU every time.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache

.DEFAULT_GOAL := help
.PHONY: help setup demo controlplane stack stack-all test test-crash test-controlplane test-kubeconfig test-kind test-node test-real test-real-vllm behaviour repeat bench verdict-matrix verdict-matrix-real verdict-matrix-worse verdict-causes fault-matrix gate check format lock clean test-stack test-stack-experiments test-stack-all

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## / — /'

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python >= 3.11 is needed, this is " + sys.version)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

$(READY): requirements.lock pyproject.toml | $(UV)
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

setup: $(READY)  ## make .venv, or reuse it

demo: $(READY)  ## a burst of tokens, a spot interruption in the middle of it, a verdict and a report
	@$(BIN)/gpu-harness run experiments/spot-interruption-during-burst.yaml

controlplane: $(READY)  ## build a real Kubernetes 1.37 control plane from Go modules, once (Go >= 1.26; minutes)
	@$(BIN)/gpu-harness stack build kubernetes

stack: $(READY)  ## build the cheap real components too: Karpenter, Kueue, KWOK, endpoint picker (minutes)
	@$(BIN)/gpu-harness stack build --cheap

stack-all: $(READY)  ## build all real components (KEDA and Prometheus are the dear ones)
	@$(BIN)/gpu-harness stack build --all

test-stack: $(READY)  ## the cheap real components, each up and at work (exits 77 where they are not built)
	@$(BIN)/python tests/stack/smoke.py $(ARGS)

test-stack-experiments: $(READY)  ## experiments on real components, each to its declared verdict (ten minutes; 77 where none can run)
	@$(BIN)/python tests/stack/stack_real.py

test-stack-all: $(READY)  ## all experiments on real components but the long ones (two at a time on two cores; 77 where none can run)
	@$(BIN)/python tests/stack/stack_real.py --all $(ARGS)

test: $(READY)  ## all tests: on all cores, then one after another those that need the machine to themselves
	@$(BIN)/python -m pytest -q -n logical --dist worksteal -m "not alone"; ended=$$?; \
	$(BIN)/python -m pytest -q -m alone && exit $$ended

test-kubeconfig: $(READY)  ## a whole run in a cluster of others, with exactly the role that it asks for (minutes)
	@FOREIGN=1 $(BIN)/python -m pytest -q tests/controlplane/test_kubeconfig_target.py

behaviour: $(READY)  ## scenarios on the embedded control plane and on a real one, compared (exits 77 without its programs)
	@$(BIN)/python tests/behaviour/behaviour.py $(ARGS)

test-controlplane: $(READY)  ## every fault with exactly its permissions, and the shipped experiments, on a real control plane; exits 77 where its programs are missing
	@ALL_VARIANTS=1 $(BIN)/python -m pytest -q tests/controlplane/test_real_permissions.py
	@$(BIN)/python tests/whole_runs/repeat.py --target controlplane --seeds 1 --reports reports/controlplane

test-node: $(READY)  ## experiments and rounds of up and down on real kubelets (root on Linux; builds what is missing; else 77)
	@$(BIN)/python tests/node/node_whole.py $(ARGS)

test-real-vllm: $(READY)  ## real vLLM servers beside the fake and as pods; installs one on first use (3 GB, minutes; exits 77 where it cannot)
	@$(BIN)/python tests/real_vllm/whole.py $(ARGS)

test-real: $(READY)  ## everything real but the silicon: kubelets and vLLM as pods (root on Linux; half an hour; exits 77 where it cannot)
	@$(BIN)/python tests/real/whole.py $(ARGS)

test-kind: $(READY)  ## real kind clusters from nothing but Debian packages and Go modules (Linux, root; exits 77 where it cannot)
	@$(BIN)/python tests/kind/kind_whole.py $(ARGS)

conformance: $(READY)  ## the embedded API beside a real kube-apiserver, case by case (77 where the programs are missing)
	@$(BIN)/python tests/conformance/whole.py --rounds 3 --write docs/conformance.md

fuzz: $(READY)  ## 10,000 random and mutated requests to the embedded API
	@FUZZ=10000 $(BIN)/python -m pytest -q tests/fakes/kube/test_kube_fuzz.py

test-crash: $(READY)  ## kill -9 at 200 random moments over all faults, Ctrl-C at 30: who stops, and what is left (up to 40 minutes)
	@MOMENTS=30 $(BIN)/python -m pytest -q tests/whole_runs/test_interruption.py
	@$(BIN)/python tests/crash/crash_run.py --write

repeat: $(READY)  ## every shipped experiment over ten seeds (about an hour)
	@$(BIN)/python tests/whole_runs/repeat.py --reports reports/repeat

verdict-matrix: $(READY)  ## every planted bug and the healthy world over many seeds, in virtual time
	@$(BIN)/python tests/matrix/verdict_matrix.py --write

verdict-matrix-real: $(READY)  ## the rows of the matrix that are marked for it, for real (about ten minutes)
	@$(BIN)/python tests/matrix/verdict_matrix.py --real --write

verdict-matrix-worse: $(READY)  ## one history of each row of the matrix, judged again as worse recorders would have seen it
	@$(BIN)/python tests/matrix/verdict_matrix.py --perturb --write

gate: $(READY)  ## the headline experiments for real, each to its declared verdict (up to twenty minutes)
	@$(BIN)/python tests/whole_runs/gate.py

verdict-causes: $(READY)  ## one run of each planted bug: does its first sentence name the cause (some minutes)
	@$(BIN)/python tests/matrix/verdict_matrix.py --causes --write

fault-matrix: $(READY)  ## every variant of every fault in virtual time, into docs/faults.md (some minutes)
	@$(BIN)/python docs/fault_matrix.py && $(BIN)/python docs/generate.py

bench: $(READY)  ## what the speed of everything is here, in CPU seconds (half an hour; SOAK=1: ten minutes more)
	@$(BIN)/python benchmarks/virtual_world.py
	@$(BIN)/python benchmarks/same_bytes.py | tail -1
	@$(BIN)/python benchmarks/big_world.py
	@$(BIN)/python benchmarks/api.py
	@$(BIN)/python benchmarks/load.py
	@$(BIN)/python benchmarks/many_requests.py
	@test -z "$(SOAK)" || $(BIN)/python benchmarks/soak.py
	@$(BIN)/python benchmarks/model_server.py
	@$(BIN)/python benchmarks/latency_sweeps.py
	@$(BIN)/python benchmarks/judging.py

check: $(READY)  ## typing and lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@MYPYPATH=benchmarks:. $(BIN)/mypy benchmarks/*.py

format: $(READY)  ## rewrite the code's layout
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: $(UV)  ## refresh requirements.lock from pyproject.toml
	@$(UV) pip compile --quiet --universal --generate-hashes --all-extras --no-header --no-emit-index-url pyproject.toml -o requirements.lock

clean:  ## remove what the targets made
	rm -rf $(VENV) .gpu-harness
