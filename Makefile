# Every verb of the project. `make help` lists them; each sets up what it needs in .venv/ by itself.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt
WORKERS ?= 2
SEEDS ?= 50
IMAGE ?= kerf/controller
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
REVISION = $(shell git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null)
ARCHIVE = type=oci,dest=build/kerf-$(VERSION).oci.tar

.DEFAULT_GOAL := help
.PHONY: help house picture questions hostile demo test check unit differential oracle e2e drills cluster bench bench-peer bench-growth bench-load bench-search bench-feed bench-webhook bench-scale-down bench-race crash-points verdicts faults lanes chaos mutations plans long manifests install-manifests docs image sbom licenses clean

help:  ## list the verbs
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.base: pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once, about half a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	@echo "adding the test tools"
	@$(PIP) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.base  ## the main job, live, without a cluster or an AWS account
	@$(BIN)/kerf demo

test: $(VENV)/.dev  ## every tier this machine can run, with a summary of the tiers
	@$(BIN)/python -m tests.tiers

check: $(VENV)/.dev  ## static checks: format, lint, types, layers, words, the Dockerfile
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.words
	@$(BIN)/hadolint Dockerfile

unit: $(VENV)/.dev  ## the fast inner loop: unit tests and laws
	@$(BIN)/python -m pytest tests/unit tests/laws -n $(WORKERS) --dist worksteal -m "not cluster and not long"

house: $(VENV)/.dev  ## how far the code can be walked: sizes, circles of imports, chains of calls, with their limits
	@$(BIN)/python -m tests.house

picture: $(VENV)/.dev  ## draw docs/architecture-rooms.svg from the imports, docs/demo.svg from a run, docs/assets/ui-*.webp in Chromium
	@$(BIN)/python -m tests.house.picture
	@$(BIN)/python -m tests.pictures.demo
	@$(BIN)/python -m tests.pictures.page

questions: $(VENV)/.dev  ## what strangers ask of the code, with answers and places; fails when a place is not there
	@$(BIN)/python -m tests.questions

differential: $(VENV)/.dev  ## small worlds by our scheduler and Karpenter's own (needs Go once): SEEDS=300 seeds
	@$(BIN)/python -m tests.differential --seeds $(SEEDS)

oracle: $(VENV)/.dev  ## random worlds by our engine, its referee and the kube-scheduler's plugins (needs Go once): SEEDS=5000
	@$(BIN)/python -m tests.oracle --seeds $(SEEDS)

e2e: $(VENV)/.dev  ## all tests on the real control plane and moto (needs Go once, to build); TIERS="failures" of these; goes on where it stopped
	@$(BIN)/python -m tests.tiers e2e $(TIERS)

drills: $(VENV)/.dev  ## API server and etcd die, history is forgotten, requests are refused, rights revoked: all drills
	@$(BIN)/python -m tests.cluster build
	@$(BIN)/python -m pytest tests/cluster/test_drills.py -m cluster -n0 -s

cluster: $(VENV)/.dev  ## start a real control plane and print its kubeconfig (Ctrl-C ends it)
	@$(BIN)/python -m tests.cluster up

bench: $(VENV)/.dev  ## the benchmarks, printed; the scheduler beside Karpenter's own (needs Go once, to build)
	@$(BIN)/python -m benchmarks

bench-peer: $(VENV)/.dev  ## of these the scheduler beside Karpenter's alone: time, nodes, cost, bound, memory, targets
	@$(BIN)/python -m benchmarks scheduling

bench-growth: $(VENV)/.dev  ## how time and memory grow with pods and types; writes docs/performance.md and its plot
	@$(BIN)/python -m benchmarks.growth

bench-search: $(VENV)/.dev  ## what a second of IMPROVE_SECONDS takes, and what it gives
	@$(BIN)/python -m benchmarks.searching

bench-load: $(VENV)/.dev  ## two weeks of a load that follows the days, by three ideas of consolidation; writes docs/performance.md
	@$(BIN)/python -m benchmarks.load_curve

bench-webhook: $(VENV)/.dev  ## the webhook as it is deployed, at 50, 150 and 500 reviews a second
	@$(BIN)/python -m benchmarks webhook

bench-feed: $(VENV)/.dev  ## the controller on 5,000 nodes and 100,000 pods, over HTTP; then lease hand-over and people on the page
	@$(BIN)/python -m benchmarks.feed
	@$(BIN)/python -m benchmarks.feed --handover
	@$(BIN)/python -m benchmarks.feed --page

hostile: $(VENV)/.dev  ## pods and pools that make a scheduler work hard: the longest pass, all passes, memory (an hour)
	@$(BIN)/python -m benchmarks.hostile

bench-scale-down: $(VENV)/.dev  ## a real cluster loses most of its pods, ours beside Karpenter; writes docs/performance.md
	@$(BIN)/python -m tests.cluster build
	@$(BIN)/python -m benchmarks.scale_down

bench-race: $(VENV)/.dev  ## ours beside Karpenter for AWS, load by load (LOADS=a,b; hours, goes on where it stopped); writes docs/performance.md
	@$(BIN)/python -m tests.cluster build
	@$(BIN)/python -m benchmarks.race $(if $(LOADS),--loads $(LOADS)) $(RACE)

crash-points: $(VENV)/.dev  ## the controller killed at every call, on real parts: nodes come, go and are replaced
	@$(BIN)/python -m tests.cluster build
	@$(BIN)/python -m tests.cluster.crash_points

verdicts: $(VENV)/.dev  ## every case of the corpus by kerf validate, the webhook and a real API server, side by side
	@$(BIN)/python -m tests.cluster build
	@$(BIN)/python -m tests.cluster.verdicts

faults: $(VENV)/.dev  ## which tool names which fault, on real parts (an hour, goes on where it stopped); writes docs/reference/faults.md
	@$(BIN)/python -m tests.cluster build
	@KERF_FAULTS=build/faults $(BIN)/python -m pytest tests/cluster/test_faults.py -m cluster -n0 -s
	@rm -rf tests/cluster/faults_seen && mv build/faults tests/cluster/faults_seen
	@$(BIN)/python -m tests.cluster.fault_records docs/reference/faults.md
	@$(BIN)/python -m pytest tests/cluster/test_fault_alerts.py -m cluster -n0

plans: $(VENV)/.dev  ## plans beside what happens then, in the sandbox and on real parts (half an hour); writes docs/plan.md
	@$(BIN)/python -m tests.cluster build
	@$(BIN)/python -m tests.simulation.plan_table
	@KERF_PLANS=docs/plan.md $(BIN)/python -m pytest tests/cluster/test_plans.py -m cluster -n0 -s

lanes: $(VENV)/.dev  ## every verb in every format from the wheel, on Python 3.11 to 3.13, dependencies pinned and newest
	@$(BIN)/python -m tests.lanes $(LANES)

chaos: $(VENV)/.dev  ## the simulation under faults: SEEDS=50 seeds, failing ones told as short as they get
	@$(BIN)/python -m tests.simulation.chaos --seeds $(SEEDS)

mutations: $(VENV)/.dev  ## plant each of the bugs of tests/mutations in a copy of the sources and see the suite find it
	@$(BIN)/python -m tests.mutations

long: $(VENV)/.dev  ## what is too long for `make test`, tier by tier (hours); TIERS="bugs" of these; goes on where it stopped
	@$(BIN)/python -m tests.tiers long $(TIERS)

manifests: $(VENV)/.base  ## render api/kerf_api/crds into manifests/crds and charts/kerf-crd, the pages of docs/reference
	@$(BIN)/python -m kerf_api.crds render manifests/crds charts/kerf-crd/files
	@$(BIN)/python -m kerf_api.chart_annotations charts/kerf/files
	@$(BIN)/python -m kerf_api.lint.rulebook docs/reference/rules.md
	@$(BIN)/python -m kerf_api.crds.reference docs/reference/api.md
	@$(BIN)/python -m kerf.cli.pages.reference docs/reference

install-manifests: $(VENV)/.dev  ## render charts/kerf into manifests/install (needs Go once, to build Helm)
	@$(BIN)/python -m tests.cluster build
	@$(BIN)/python -m tests.cluster.install_manifests

docs: $(VENV)/.dev  ## the documentation as a site, into build/site; REPOSITORY=https://... links each page to its source
	@NO_MKDOCS_2_WARNING=1 KERF_REPOSITORY=$(REPOSITORY) $(BIN)/mkdocs build --strict
	@echo 'open build/site/index.html, or serve it: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000'

image:  ## the container image (needs Docker with buildx): IMAGE=registry/name PLATFORMS=linux/amd64,linux/arm64 PUSH=1
	docker buildx build --tag $(IMAGE):$(VERSION) --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) \
		$(if $(PLATFORMS),--platform $(PLATFORMS)) $(if $(PUSH),--push,$(if $(PLATFORMS),--output $(ARCHIVE),--load)) \
		$(BUILD_FLAGS) .

sbom: $(VENV)/.dev  ## a bill of materials of the image for each platform (CycloneDX), into build/image; needs no Docker
	@$(BIN)/python -m image sbom build/image

licenses: $(VENV)/.dev  ## the licences of all that the image holds, into build/image; fails on what may not be in it
	@$(BIN)/python -m image licences build/image

clean:  ## remove what was built here (the control plane's binaries too)
	rm -rf $(VENV) .cache build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
