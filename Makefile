# Everything that is done with this repository. `make help` lists it.

BIN    := bin/pgebb
CONFIG ?= pgdog.toml
USERS  ?= users.toml
FUZZTIME ?= 10s

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/pgebb
	go build -o $(BIN) ./cmd/pgebb

.PHONY: run
run: build ## run it in the foreground: make run CONFIG=pgdog.toml USERS=users.toml
	$(BIN) -c $(CONFIG) -u $(USERS) run

.PHONY: demo
demo: build ## show it at work before a throwaway Postgres
	scripts/ensure-postgres.sh
	go run ./internal/demo -pgebb $(BIN)

.PHONY: test
test: ## everything that must hold: format, vet, lint, and all tests before a throwaway Postgres
	scripts/ensure-postgres.sh
	scripts/ensure-drivers.sh
	$(MAKE) --no-print-directory lint
	go run ./internal/withpg scripts/test.sh

.PHONY: check
check: lint ## format, vet, lint, and the tests that need no Postgres
	go test $$(go list ./... | grep -v /internal/e2e)

.PHONY: lint
lint: ## format, vet and lint
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	go vet ./...
	go tool staticcheck ./...

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (10s)
	scripts/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: build ## compare with the pgbouncer on the PATH, if there is one
	scripts/ensure-postgres.sh
	go run ./internal/bench -pgebb $(BIN)

.PHONY: docs
docs: ## make the generated documents anew
	go generate ./...

.PHONY: clean
clean: ## remove what was built
	rm -rf bin internal/e2e/node/node_modules
