# Everything a contributor or a machine runs. `make check test` is what .ci/run runs.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

GO            ?= go
TEST_FLAGS    ?=
TEST_TIMEOUT  ?= 20m
NIGHTLY_TIMEOUT ?= 12h
NIGHTLY_CHECKS  ?= 20000
FUZZ_TIME       ?= 1m
BENCH_FLAGS   ?=
GO_BENCH_FLAGS ?= -benchmem

# need COMMAND,DEBIAN PACKAGE: makes sure that the command exists, by installing it where that is possible.
define need
	@command -v $(1) >/dev/null || { \
		if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
			{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $(2); } >&2; \
		else \
			echo "make: $(1) is missing: install it (Debian: apt-get install $(2))" >&2; exit 1; \
		fi; }
endef

.PHONY: build demo demo-migrate test test-nightly test-tools check check-format check-generated check-modules generate bench bench-readme bench-go clean

build:
	$(GO) build -o bin/moraine ./cmd/moraine

# The tour, in a store that is gone afterwards.
demo:
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	echo "building …"; \
	$(GO) build -buildvcs=false -o "$$dir/moraine" ./cmd/moraine; \
	"$$dir/moraine" --store "bolt:$$dir/meta.db" --blocks "file:$$dir/blocks" demo; \
	echo "# (make demo removes its store now; bin/moraine demo keeps one.)"

# The tour of a migration: PostgreSQL tables to bbolt, killed half way.
demo-migrate:
	$(call need,/usr/lib/postgresql/*/bin/initdb,postgresql)
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	echo "building …"; \
	$(GO) build -buildvcs=false -o "$$dir/moraine" ./cmd/moraine; \
	"$$dir/moraine" --store "bolt:$$dir/meta.db" --blocks "file:$$dir/blocks" demo --migrate

# What tests need beyond Go: the race detector needs a C compiler.
test-tools:
	$(call need,gcc,gcc libc6-dev)

# The race detector checks pointers, too, which ends the process where bbolt reads a damaged file: an error otherwise.
RACE := -race -gcflags='go.etcd.io/bbolt/...=-d=checkptr=0'

test: test-tools
	CGO_ENABLED=1 $(GO) test $(RACE) -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...
	$(GO) test -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./pkg/lifecycle/dailyrun # two thousand histories, of which the race detector sees a part

# Long runs, and a minute for each fuzz target. Only packages whose tests link rapid know its flags, so they run apart.
test-nightly: test-tools
	export CGO_ENABLED=1 MORAINE_NIGHTLY=1; \
	list='{{if eq .Name "main"}}{{.ImportPath}} {{.Deps}}{{end}}'; \
	rapid=$$($(GO) list -test -f "$$list" ./... | awk '$$1 ~ /\.test$$/ && /pgregory\.net\/rapid/ {sub(/\.test$$/, "", $$1); print $$1}'); \
	others=$$($(GO) list ./... | grep -vxF -e "$$rapid" || true); \
	status=0; \
	if [ -n "$$others" ]; then $(GO) test $(RACE) -timeout $(NIGHTLY_TIMEOUT) $(TEST_FLAGS) $$others || status=1; fi; \
	if [ -n "$$rapid" ]; then $(GO) test $(RACE) -timeout $(NIGHTLY_TIMEOUT) $(TEST_FLAGS) $$rapid -rapid.checks=$(NIGHTLY_CHECKS) || status=1; fi; \
	for target in $$(grep -rhoE --include='*_test.go' '^func Fuzz[A-Za-z]+' . | sed 's/func //' | sort -u); do \
		for dir in $$(grep -rlE --include='*_test.go' "^func $$target\(" . | xargs -n1 dirname | sort -u); do \
			$(GO) test -run - -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) $$dir || status=1; \
		done; \
	done; \
	exit $$status

check: check-format check-modules check-generated
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test -count=1 ./internal/house

check-format:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (gofmt -w):" >&2; echo "$$files" >&2; exit 1; fi

check-modules:
	$(GO) mod tidy -diff

# Generates in a copy, so that it neither needs a clean tree nor touches this one.
check-generated:
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	tar --exclude=./.git --exclude=./bin -cf - . | tar -xf - -C "$$dir"; \
	$(MAKE) --no-print-directory -C "$$dir" generate; \
	diff -r --exclude=.git --exclude=bin "$$dir" . || { echo "generated files are not up to date (make generate)" >&2; exit 1; }

# The plugin's version is go.mod's; protoc's differs between distributions, so headers name neither.
generate:
	$(call need,protoc,protobuf-compiler)
	@mkdir -p bin
	$(GO) build -o bin/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go
	@protos=$$(find pkg -name '*.proto' | sort); \
	if [ -n "$$protos" ]; then \
		protoc -I . --plugin=bin/protoc-gen-go --go_out=. --go_opt=paths=source_relative $$protos; \
		sed -i -e '/^\/\/ versions:$$/d' -e '/^\/\/ [[:space:]]*protoc\(-gen-go\)\{0,1\} /d' $${protos//.proto/.pb.go}; \
	fi
	$(GO) generate ./...

# The benchmark suite in its short setting: prints figures and targets, and leaves them in bin/bench with the plots.
bench: build
	bin/moraine bench all --short --out bin/bench $(BENCH_FLAGS)

# The same for the page that shows them.
bench-readme: build
	bin/moraine bench all --short --out benchmarks/plots --readme benchmarks/README.md $(BENCH_FLAGS)

# The micro-benchmarks of the packages.
bench-go:
	$(GO) test -run - -bench . $(GO_BENCH_FLAGS) -timeout $(NIGHTLY_TIMEOUT) ./...

clean:
	rm -rf bin
