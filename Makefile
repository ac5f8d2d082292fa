# Everything that is done with this repository. `make help` lists it.

BIN      := bin/pgebb
CONFIG   ?= pgdog.toml
USERS    ?= users.toml
FUZZTIME ?= 10s

# A working copy that git does not trust, such as one of another user, has no version.
BUILDVCS := $(shell git rev-parse HEAD >/dev/null 2>&1 || echo -buildvcs=false)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## build bin/pgebb
	go build $(BUILDVCS) -o $(BIN) ./cmd/pgebb

.PHONY: run
run: build ## run it in the foreground: make run CONFIG=pgdog.toml USERS=users.toml
	exec $(BIN) -c $(CONFIG) -u $(USERS) run

.PHONY: demo
demo: build ## show it at work before a throwaway Postgres; KEEP=1 leaves time to connect to it
	scripts/ensure-postgres.sh
	go run ./internal/demo -pgebb $(BIN) $(if $(KEEP),-keep)

.PHONY: test
test: ## everything that must hold: format, vet, lint, and all tests before a throwaway Postgres
	scripts/ensure-postgres.sh
	scripts/ensure-drivers.sh
	$(MAKE) --no-print-directory lint
	go run ./internal/withpg scripts/test.sh

.PHONY: check
check: lint ## format, vet, lint, and the tests that need no Postgres
	go test $$(go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | grep -v internal/testpg | cut -d' ' -f1)

.PHONY: race
race: ## all tests with the race detector, and nothing else; packages that need a Postgres start their own
	go test -race ./...

.PHONY: lint
lint: ## format, vet and lint
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	go vet ./...
	go tool staticcheck ./...

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (10s)
	scripts/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: build ## compare with the pgbouncer on the PATH, if there is one; ARGS are its flags
	scripts/ensure-postgres.sh
	go run ./internal/bench -pgebb $(or $(PGEBB_BIN),$(BIN)) $(ARGS)

.PHONY: pgo
pgo: ## measure what pgebb spends its time on, for the compiler (cmd/pgebb/default.pgo)
	scripts/ensure-postgres.sh
	scripts/pgo.sh

.PHONY: workloads
workloads: build ## put loads on pgebb that make poolers grow, and show how its memory comes back; -help lists flags for ARGS
	scripts/ensure-postgres.sh
	go run ./internal/workload -pgebb $(BIN) -plots bin/plots $(ARGS)

.PHONY: docs
docs: ## make the generated documents anew
	go generate ./...

.PHONY: clean
clean: ## remove what was built and installed here
	rm -rf bin internal/e2e/node/node_modules
