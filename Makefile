# Everything a person or a machine does with this project. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

GO ?= go
# Works without a tag (then it is the commit) and without git (then it is empty).
VERSION ?= $(shell git -c safe.directory='*' describe --tags --always --dirty 2>/dev/null)
BUILD := -ldflags '-s -w -X main.version=$(VERSION)'
# Git refuses to answer Go in a checkout that belongs to somebody else, and that fails the build.
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)
TOOL := $(GO) tool -modfile=.ci/tools.mod
# Some tests mount a small file system, make devices or give files away: who is not root
# builds as who they are and runs the tests by sudo.
EXEC := $(shell [ "$$(id -u)" = 0 ] || echo "-exec 'sudo -E env PATH=$$PATH'")
# What `go test` gets in `make test`. Cached results would not know that the binary has changed.
TESTFLAGS ?= -race -count=1 -timeout 20m

.PHONY: help build demo test quick check bench acceptance soak install format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

build: ## bin/lakecode
	@mkdir -p bin
	$(GO) build $(BUILD) -o bin/lakecode ./cmd/lakecode

demo: build ## watch the agent mend a small project: no key, no account, no network
	@$(GO) run ./tests/demo

test: install ## install what the tests need, then check and run every test
	@mkdir -p tests/out
	@checked=0; GO='$(GO)' .ci/check || checked=1; \
	$(GO) test -json $(EXEC) $(TESTFLAGS) ./... | $(GO) run ./tests/report -out tests/out/test.json; \
	[ $$checked -eq 0 ] || { echo "A check of the source failed, see above."; exit 1; }

quick: ## the inner loop: the short tests only, under two minutes
	$(GO) test -race -short ./agent/... ./cmd/... ./lsp/... ./providers/... ./session/... ./tools/...

check: ## format, vet, the build for macOS, staticcheck, layers, generated files
	@GO='$(GO)' .ci/check

bench: build install ## every figure against its bar; fails on a miss
	@$(GO) run ./tests/bench

acceptance: ## which scenarios of the acceptance list passed in the last `make test`
	@$(GO) run ./tests/acceptance

soak: ## the long forms: 500 kill points, and every race many times
	LAKECODE_KILLS=500 $(GO) test -race -count=1 -timeout 30m -run TestKilled ./session
	$(GO) test -race -count=40 -timeout 40m -run TestKillAtRandomMoments ./tests/scenario
	$(GO) test -race -count=20 -timeout 40m ./agent/... ./lsp/... ./tools

install: ## what the tests need from the system's packages
	@.ci/install

format: ## rewrite the Go files in the project's format
	$(TOOL) gofumpt -w $$(git ls-files '*.go')

clean: ## remove what was built; the caches of Go stay
	rm -rf bin tests/out .cache
