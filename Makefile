# Everything here works on a machine with Go, a C compiler and the Go module proxy; see CONTRIBUTING.md.
# Tools are built once for a machine, outside of the clone: internal/realtool/toolcache/tools.txt has their versions.

MODULE  := github.com/dnsmesh/kubectl-dnsmesh
BINARY  := bin/kubectl-dnsmesh

# What can be set: make fuzz FUZZTIME=10m
VERSION  ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo v0.0.0-dev)
FUZZ     ?= .
FUZZTIME ?= 1m
SOAKTIME ?= 1h
BENCH    ?= .
TRUTHNAMES ?= 10000
TRUTHSEED  ?= $(shell date +%s)
TOOLS    ?=
# Debian packages that tests need, as program:package; "make packages" installs those whose program is missing.
PACKAGES ?= cc:gcc git:git
# The same for tests that need root.
E2E_PACKAGES ?= musl-gcc:musl-tools

export GOWORK = off

tool = $$(go run ./internal/realtool/buildtools -path $(1))

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the plugin into bin/kubectl-dnsmesh
	@mkdir -p bin
	@CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(BINARY) ./cmd/kubectl-dnsmesh

.PHONY: demo
demo: build ## Build, then run doctor on a bundled snapshot of a cluster
	@echo '$$ kubectl dnsmesh doctor -f testdata/demo/my-app.yaml'
	@code=0; $(BINARY) doctor -f testdata/demo/my-app.yaml || code=$$?; \
	if [ $$code -ne 1 ]; then echo "error: doctor ended with status $$code, want 1: there are findings to show" >&2; exit 1; fi

.PHONY: test
test: ## Check and test everything that needs no root, tools and fuzz targets included
	@$(MAKE) --no-print-directory packages
	@$(MAKE) --no-print-directory tools
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory fuzz FUZZTIME=5s

.PHONY: unit
unit: ## Run the tests with the race detector
	CGO_ENABLED=1 go test -race -shuffle=on -timeout 20m ./...

.PHONY: lint
lint: ## Run go vet, golangci-lint, gofumpt and the check of the krew manifest
	@$(MAKE) --no-print-directory tools TOOLS='golangci-lint gofumpt validate-krew-manifest'
	go vet ./...
	go vet -tags e2e,soak ./...
	@echo golangci-lint run; $(call tool,golangci-lint) run
	@echo gofumpt -l .; files=$$($(call tool,gofumpt) -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run make fmt:"; echo "$$files"; exit 1; fi
	@$(MAKE) --no-print-directory krew

# krew wants the file to have the name of the plugin. Installing is left out: it fetches the archives of the release.
.PHONY: krew
krew: ## Check .krew.yaml
	@echo validate-krew-manifest; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; cp .krew.yaml "$$dir/dnsmesh.yaml"; \
	$(call tool,validate-krew-manifest) -skip-install -manifest "$$dir/dnsmesh.yaml" 2>"$$dir/log" || { cat "$$dir/log"; exit 1; }

.PHONY: fmt
fmt: ## Format the sources
	@$(MAKE) --no-print-directory tools TOOLS=gofumpt
	@$(call tool,gofumpt) -w .

.PHONY: fuzz
fuzz: ## Run every fuzz target, or those that match FUZZ, for FUZZTIME (1m)
	@tools/fuzz.sh $(FUZZTIME) '$(FUZZ)'

.PHONY: bench
bench: build ## Run the benchmarks that match BENCH (all), with their peers
	@$(MAKE) --no-print-directory tools TOOLS='etcd kube-apiserver kubectl'
	@dirs=$$(grep -rlE --include='*_test.go' '^func Benchmark' cmd internal pkg | sed 's|/[^/]*$$||; s|^|./|' | sort -u); \
	if [ -z "$$dirs" ]; then echo "no package has benchmarks"; exit 0; fi; \
	DNSMESH_REQUIRE_TOOLS=1 go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 2h -p 1 $$dirs

# A package takes part by files with the build constraint e2e (or soak) and tests named TestE2E… (TestSoak…).
.PHONY: test-e2e
test-e2e: ## Run the tests that need root or a container runtime, and the short form of the soaks
	@$(MAKE) --no-print-directory packages PACKAGES='$(PACKAGES) $(E2E_PACKAGES)'
	@dirs=$$(grep -rlE --include='*_test.go' '^//go:build .*\be2e\b' cmd internal pkg | sed 's|/[^/]*$$||; s|^|./|' | sort -u); \
	if [ -z "$$dirs" ]; then echo "no package has tests that need root"; \
	else go test -tags e2e -run '^TestE2E' -timeout 30m -p 1 $$dirs; fi
	@$(MAKE) --no-print-directory soak SOAKTIME=20s

.PHONY: truth
truth: ## Hold the models of resolvers against glibc, musl and Go: TRUTHNAMES (10000) random names; needs root
	@$(MAKE) --no-print-directory packages PACKAGES='$(PACKAGES) $(E2E_PACKAGES)'
	DNSMESH_REQUIRE_TOOLS=1 TRUTH_NAMES=$(TRUTHNAMES) TRUTH_SEED=$(TRUTHSEED) \
		go test -tags e2e -run '^TestE2EStubResolvers' -count 1 -v -timeout 2h ./pkg/resolve

.PHONY: soak
soak: ## Run every soak for SOAKTIME (1h)
	@dirs=$$(grep -rlE --include='*_test.go' '^//go:build .*\bsoak\b' cmd internal pkg | sed 's|/[^/]*$$||; s|^|./|' | sort -u); \
	if [ -z "$$dirs" ]; then echo "no package has soaks"; \
	else SOAKTIME=$(SOAKTIME) go test -tags soak -run '^TestSoak' -timeout 24h -p 1 $$dirs; fi

.PHONY: update
update: ## Write generated files again: docs, golden files, THIRD_PARTY_LICENSES
	go generate ./...
	@dirs=$$(grep -rlE --include='*_test.go' 'kubectl-dnsmesh/internal/golden"' cmd internal pkg | sed 's|/[^/]*$$||; s|^|./|' | sort -u); \
	echo go test -update $$dirs; go test $$dirs -update

.PHONY: tools
tools: ## Build the pinned tools that are missing (TOOLS: only these)
	@go run ./internal/realtool/buildtools $(TOOLS)

.PHONY: packages
packages: ## Install the Debian packages that tests need and the machine lacks
	@missing=; for p in $(PACKAGES); do command -v "$${p%%:*}" >/dev/null || missing="$$missing $${p#*:}"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		echo "installing$$missing"; export DEBIAN_FRONTEND=noninteractive; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing libc6-dev; \
	else echo "error: the tests need$$missing; install with: sudo apt-get install$$missing libc6-dev" >&2; exit 1; fi

.PHONY: vuln
vuln: ## Look for known vulnerabilities in what is linked in (asks the Go vulnerability database)
	@$(MAKE) --no-print-directory tools TOOLS=govulncheck
	@$(call tool,govulncheck) ./cmd/...

.PHONY: clean
clean: ## Remove what was built here; the tools stay
	@rm -rf bin dist
