# Emmer's commands. `make help` lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The stock compiler builds the filter. No -s -w: they save 2 % of the module (60 KB: Go writes no
# DWARF for wasm) and cost the function names in the host's stack traces. plugin/internal/wasmbuild
# builds the same for tests; a test there compares the two lines.
WASM_FLAGS := -trimpath -buildmode=c-shared
WASM_BUILD := GOOS=wasip1 GOARCH=wasm go build $(WASM_FLAGS)

TEST_FLAGS ?= -timeout 20m
FUZZTIME ?= 20s

# A module of its own: what the tokenizer is made, compared and timed with.
LAB := tokenizer/internal/lab

## build

.PHONY: wasm
wasm: ## build the filter: bin/emmer.wasm
	$(WASM_BUILD) -o bin/emmer.wasm ./plugin

.PHONY: build
build: wasm ## build everything into bin/: the filter, emmer-bridge, emmer-sim
	go build -trimpath -o bin/emmer-bridge ./bucket/cmd/emmer-bridge
	go build -trimpath -o bin/emmer-sim ./hostsim/cmd/emmer-sim

.PHONY: clean
clean: ## remove what was built (keeps the installed Envoy in .cache/)
	rm -rf bin

## test

.PHONY: tools
tools: ## find or install what the tests need: Envoy and Valkey (into .cache/), and Redis
	@.ci/envoy.sh >/dev/null
	@.ci/redis.sh >/dev/null
	@.ci/valkey.sh >/dev/null

.PHONY: test
test: tools ## every test, on hostsim, real Envoy and real Redis
	EMMER_ENVOY="$$(.ci/envoy.sh 2>/dev/null)" EMMER_REDIS="$$(.ci/redis.sh 2>/dev/null)" go test $(TEST_FLAGS) ./...
	go vet -C $(LAB) ./...
	go test -C $(LAB) $(TEST_FLAGS) ./...

.PHONY: check
check: fmt vet lint lattice licences test ## what CI runs: format, vet, lint, lattice, licences, then every test

.PHONY: fmt
fmt: ## fail if a file is not gofmt'ed
	@out=$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go' -not -path './.*')); \
	if [ -n "$$out" ]; then echo "not gofmt'ed (run gofmt -w):"; echo "$$out"; exit 1; fi; echo "fmt: ok"

.PHONY: vet
vet: ## go vet
	go vet ./...

.PHONY: lint
lint: ## staticcheck, at the version pinned in go.mod
	go tool staticcheck ./...

.PHONY: lattice
lattice: ## who may import whom, what the pure rooms may do, which words files may hold
	go test -count=1 -run 'Lattice|Pure|Words' ./plugin/internal/policy

.PHONY: licences
licences: ## every dependency's licence is permissive, every data file of others has its notice
	go test -count=1 -run 'Licences|Notices' ./plugin/internal/policy

.PHONY: test-envoy
test-envoy: tools ## only the tests that run a real Envoy
	EMMER_ENVOY="$$(.ci/envoy.sh 2>/dev/null)" EMMER_REDIS="$$(.ci/redis.sh 2>/dev/null)" go test $(TEST_FLAGS) -run 'Envoy' ./...

.PHONY: test-redis
test-redis: tools ## the limits on real Redis and Valkey at length (200,000 random steps, a minute of each load), the filter over them
	EMMER_STEPS=$${EMMER_STEPS:-200000} EMMER_SECONDS=$${EMMER_SECONDS:-60} EMMER_REDIS="$$(.ci/redis.sh 2>/dev/null)" go test -count=1 -timeout 40m ./bucket/...
	EMMER_ENVOY="$$(.ci/envoy.sh 2>/dev/null)" EMMER_REDIS="$$(.ci/redis.sh 2>/dev/null)" go test -count=1 $(TEST_FLAGS) -run '$(ON_REDIS)' ./plugin

# Tests of the filter that ask many things of one real Redis or Cluster.
ON_REDIS := Race|Shares|Shards|Queue|TwoHundred|NothingLost|Clocks|Store|Wait|^TestKill$$

.PHONY: test-clients
test-clients: tools wasm ## the official clients of OpenAI, Anthropic, Cohere, Google and LangChain (into .cache/) through a real Envoy
	@.ci/clients.sh
	go vet -C examples/clients ./...
	EMMER_ENVOY="$$(.ci/envoy.sh 2>/dev/null)" go test -C examples/clients -count=1 $(TEST_FLAGS) ./...

.PHONY: test-tokenizer
test-tokenizer: ## a million strings against another tokenizer, whole, in parts and as escaped JSON
	go test -C $(LAB) -count=1 -timeout 30m -v -run Difference ./differ -strings 1000000

.PHONY: golden
golden: ## count the tokenizer's test set again with npm tiktoken (needs node)
	go run -C $(LAB) ./golden

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (20s) each
	.ci/fuzz.sh $(FUZZTIME)

## see

.PHONY: demo
demo: wasm ## a short story on a real Envoy, then curl lines to try (ONCE=1 ends after the story)
	@.ci/envoy.sh >/dev/null
	@go build -trimpath -o bin/demo ./examples/demo # not go run, which fails when ctrl-C ends it
	@EMMER_ENVOY="$$(.ci/envoy.sh 2>/dev/null)" bin/demo $(if $(ONCE),-once)

## measure

.PHONY: size
size: build ## bytes of the .wasm and memory of a VM, at start and after 1,000 calls
	bin/emmer-sim size -wasm bin/emmer.wasm

.PHONY: bench
bench: tools build ## latency and throughput of bare Envoy, the floor of this architecture, and Emmer
	$(WASM_BUILD) -o bin/floor.wasm ./hostsim/testdata/floor
	EMMER_ENVOY="$$(.ci/envoy.sh 2>/dev/null)" EMMER_REDIS="$$(.ci/redis.sh 2>/dev/null)" \
	bin/emmer-sim bench -wasm bin/emmer.wasm -floor bin/floor.wasm -bridge bin/emmer-bridge $(BENCH_FLAGS)

.PHONY: fit-tokenizer
fit-tokenizer: ## fit the tables of tokenizer/approx to public packages' texts (cached in .cache/fit) and print their errors
	cd tokenizer/internal/lab && GOMAXPROCS=1 go run ./fit && GOMAXPROCS=1 go run ./fit -report

.PHONY: bench-tokenizer
bench-tokenizer: ## counting, natively, on wazero and in V8, next to two Go libraries; then the aims
	@go run -C $(LAB) ./bench

.PHONY: help
help: ## this list
	@awk 'BEGIN {FS = ":[^#]*## "} /^## / {printf "\n%s\n", substr($$0, 4)} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile
