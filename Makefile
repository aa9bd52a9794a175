# Every target with its line in `make help`. Variables may be given: make invoke FUNCTION=… EVENT=…

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export PATH := $(CURDIR)/.tools/bin:$(PATH)
export SAM_CLI_TELEMETRY := 0

BUILT := $(or $(CARGO_TARGET_DIR),target)
FUNCTION ?= order-confirmation
EVENT ?= order
override MINUTES := $(or $(MINUTES),1)
PUBLISHED := $(addprefix -p ,$(notdir $(wildcard crates/*)))
FUNCTIONS := $(addprefix -p ,$(notdir $(wildcard functions/*)))
# What `make simulate` is asked to run, if that is not just seeds.
ONE_OF = $(strip $(foreach name,SEED SCENARIO MUTANTS,$(if $($(name)),$(name))))

.PHONY: help run dev test lint docs pictures dashboard fmt watch invoke build deploy bench stores model simulate outage scale growth throughput fuzz storm mutants package msrv clean tools binaries \
	tests test-it test-cloud test-rest test-doc test-functions test-lambda test-seeds test-storm test-new test-templates test-licences test-doctor

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# By their names: for the whole workspace, cargo would also build what only tests need.
run: ## Start the local cloud, send it a sample workload, and show what became of it; POSTGRES=throwaway: with inventory
	$(if $(filter-out throwaway env:%,$(POSTGRES)),$(error POSTGRES is throwaway, or env:NAME, where the variable NAME has the URL of a database of yours))
	cargo build --locked --bins -p claimant-cli $(FUNCTIONS)$(if $(filter throwaway,$(POSTGRES)), -p claimant-servers)
	@$(if $(filter throwaway,$(POSTGRES)),POSTGRES=env:DATABASE_URL $(BUILT)/debug/claimant-server postgres) scripts/run

dev: ## Start the local cloud and leave it up; Ctrl-C stops it
	cargo build --locked --bins -p claimant-cli $(FUNCTIONS)
	@$(BUILT)/debug/claimant local

test: ## Everything: lints, unit and integration tests, the template, a round of cargo lambda
	cargo fmt --all --check
	@$(MAKE) -j2 tools tests
	@# While one waits, another computes. The longest come first, and what only computes stands back for what waits for others.
	@# The functions have leases of seconds. On a busy machine a process stands still for longer, and messages use up their
	@# receives before it has had its turn: what is about them goes before all others.
	@$(MAKE) -j5 IN_TURN=yes $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) \
		test-storm test-cloud test-it test-rest test-seeds test-new test-functions test-doc test-templates test-licences

# Lints and tests share one build: clippy compiles the workspace's own crates, cargo the others. A `cargo clippy` of its own
# would compile every dependency once more.
tests pictures test-%: export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/scripts/clippy-rustc
tests pictures test-%: export CLIPPY_ARGS := -Dwarnings

ifdef IN_TURN
test-cloud: test-storm
test-it test-rest test-lambda test-functions: test-cloud
endif

# All that the tests below run, in one build: what they then ask cargo for is there. --all-targets, --lib and --bins would build a test
# program for targets without tests, too.
tests:
	cargo test --workspace --locked --no-run

# The integration tests, with the servers that they start. Always of the whole workspace: with -p, the SDKs would be built again for
# fewer features. These tests wait more than they compute: more at once than there are cores.
test-it:
	RUST_TEST_THREADS=5 cargo test --workspace --locked --test it -- --include-ignored --skip cloud:: --skip lambda_round

# The project's functions in the local cloud.
test-cloud:
	cargo test --workspace --locked --test it -- --include-ignored cloud::

# All other tests that need nothing but the machine; many of these wait, too. Not by --lib and --bins, which would build test programs
# without tests.
test-rest:
	RUST_TEST_THREADS=4 cargo test --workspace --locked --tests --config "target.'cfg(all())'.runner = ['$(CURDIR)/scripts/all-but', 'it']"

# The examples in doc comments. Not by --doc, which reads the libraries without examples, too. Each rustdoc would warn at length of the
# job server that make names and keeps to itself.
test-doc:
	nice env -u MAKEFLAGS -u MFLAGS cargo test --workspace --locked --config "target.'cfg(all())'.runner = ['$(CURDIR)/scripts/all-but', 'programs']"

test-functions:
	RUST_TEST_THREADS=4 cargo test --workspace --locked --test function --test loaded --test servers --test counts --bin example -- --ignored

test-lambda:
	cargo test --workspace --locked --test it -- --ignored lambda_round

test-seeds:
	nice cargo test --workspace --locked --test simulation -- --ignored

test-storm:
	cargo build --workspace --locked --bin claimant-storm
	$(BUILT)/debug/claimant-storm --seconds 15

# It copies the directory of the build, so no other build may change that meanwhile.
test-new: test-lambda
	cargo test --workspace --locked --test new -- --ignored

# Of all platforms: cargo has fetched only what this one builds.
test-licences:
	cargo fetch --locked --quiet
	cargo test --workspace --locked --test rules -- --ignored

# What `claimant doctor` says of the repository's own templates: nothing. Part of test-rest, too.
test-doctor:
	cargo test --workspace --locked --test doctor own_templates

# What `sam validate --lint` runs for each template, in one process.
test-templates:
	cfn-lint --regions us-east-1 -- template.yaml infra/alarms.yaml infra/dashboard.yaml

lint: test-licences test-doctor ## Check format, lints, licences, and which crate may use which
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

fmt: ## Format the code
	cargo fmt --all

docs: ## Build the book of docs/ into target/book
	@scripts/tools mdbook
	mdbook build docs

pictures: tests ## Make the pictures of the book's page on the console, in a browser
	@scripts/tools browser
	CLAIMANT_PICTURES=docs/console cargo test --workspace --locked --test it -- --ignored console::story

dashboard: ## Draw the dashboard of the book's page on operating, from a run in the local cloud
	cargo build --locked --bins -p claimant-dashboard -p order-confirmation
	@$(BUILT)/debug/claimant-dashboard

watch: ## Run the functions by cargo lambda watch, rebuilt on every change, beside a local cloud
	cargo build --locked -p claimant-cli
	@scripts/watch

invoke: ## Send FUNCTION the sample EVENT (tests/events) while `make watch` runs
	@scripts/invoke '$(FUNCTION)' '$(EVENT)'

build: ## Make the deployable artefact in .aws-sam/build
	@scripts/tools python zig
	sam build

bench: ## Measure claimant beside what one would use instead, and write docs/performance.md
	@scripts/bench

stores: tools ## Hold every store to the contract, and write docs/stores.md
	CLAIMANT_STORES=write cargo test -p claimant-tests --locked --test it contract:: -- --include-ignored

model: ## Model-check the protocol, small worlds and the large one; WORLD=small, WORLD=large or WORLD=ablation for one part
	$(if $(filter-out small large ablation,$(WORLD)),$(error WORLD is small, large or ablation))
	cargo run --release --locked -p claimant-model -- $(WORLD)

simulate: whole-SEED whole-SEEDS whole-FROM ## Simulate the runtime under faults: SEEDS=100000, or SEED=7 or SCENARIO=file with its trace, or MUTANTS=1; MUTANT=name for one
	$(if $(filter-out 1,$(MUTANTS)),$(error MUTANTS is 1))
	$(if $(word 2,$(ONE_OF)),$(error SEED, SCENARIO and MUTANTS say what is run: give one of them))
	$(if $(and $(filter SEED SCENARIO,$(ONE_OF)),$(SEEDS)$(FROM)),$(error $(ONE_OF) is one run: SEEDS and FROM are for many))
	$(if $(MUTANT),$(if $(ONE_OF),,$(error MUTANT goes with MUTANTS=1, SEED or SCENARIO)))
	cargo run --locked $(if $(SEED)$(SCENARIO),,--profile simulate) -p claimant-sim -- $(if $(SEED),--seed $(SEED)) $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(MUTANTS),--mutants) $(if $(MUTANT),--mutant $(MUTANT)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FROM),--from $(FROM))

outage: ## Run half an hour without what a consumer calls, with each means against it, and write table and plot into docs/
	cargo run --release --locked -p claimant-outage

scale: ## Run 20,000 messages a second on DynamoDB's partitions, on virtual time, and write the tables into docs/scale.md
	cargo run --release --locked -p claimant-scale

growth: ## Measure how cost grows with records, batches, keys, processes and groups, and write docs/growth.md; QUICK=1 for less, not written
	nice cargo build --release --locked -p claimant-growth -p order-confirmation
	$(BUILT)/release/claimant-growth growth $(if $(QUICK),--quick)

throughput: whole-MINUTES whole-RATE ## Hold the highest rate of the whole way, from a producer to a table, for MINUTES; from 10 on, write docs/growth.md
	nice cargo build --release --locked -p claimant-growth -p order-confirmation
	$(BUILT)/release/claimant-growth throughput --seconds $$(($(MINUTES) * 60)) $(if $(RATE),--rate $(RATE))

fuzz: whole-MINUTES tools ## Give each fuzz target and property generated inputs for MINUTES (default 1), and say how many
	CLAIMANT_FUZZ_SECONDS=$$(($(MINUTES) * 60)) cargo test --locked -p claimant-core -p claimant-decode -p claimant-dynamodb -p claimant-events \
		-p claimant-lambda -p claimant-redis -p claimant-sql --all-features --lib -- --nocapture fuzz::
	CLAIMANT_FUZZ_SECONDS=$$(($(MINUTES) * 60)) cargo test --locked -p claimant-s3 --test payloads -- --nocapture fuzz::
	CLAIMANT_FUZZ_SECONDS=$$(($(MINUTES) * 60)) cargo test --locked -p claimant-tests --test it -- --include-ignored \
		--nocapture agreement::

storm: whole-MINUTES whole-SEED tools binaries ## Storm over the built functions for MINUTES: kills, stops, a line that fails; SEED=… for the same again
	@scripts/tools ministack
	$(BUILT)/debug/claimant-storm --seconds $$(( $(MINUTES) * 60 )) $(if $(SEED),--seed $(SEED))
	.tools/ministack/bin/python scripts/storm-ministack $(BUILT)/debug $$(( $(MINUTES) * 30 )) $(SEED)

mutants: ## Change each line of the core and the lock table, and want a test to fail: PART=core or PART=lock-table for one
	@scripts/mutants $(PART)

package: ## What a release needs beside `make test`: docs without warnings, each feature alone, each package built, cargo-deny
	@scripts/tools hack deny
	RUSTDOCFLAGS='-D warnings' cargo doc $(PUBLISHED) --no-deps --all-features --locked
	cargo hack clippy $(PUBLISHED) --each-feature --locked -- -D warnings
	cargo package $(PUBLISHED) --locked
	cargo fetch --locked --quiet
	cargo-deny --offline --log-level error check licenses bans sources

msrv: ## Check the workspace with the oldest Rust that it supports, which rustup fetches
	rust=$$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml); \
	rustup toolchain install "$$rust" --profile minimal --no-self-update; \
	cargo +"$$rust" check --workspace --all-features --locked

deploy: build ## Deploy to AWS; the first time it asks for the settings
	$(if $(wildcard samconfig.toml),sam deploy,sam deploy --guided)

clean: ## Remove what was built; the tools in .tools stay
	cargo clean
	rm -rf .aws-sam .local

tools: ## Install the pinned tools into .tools, and the servers for tests
	@scripts/tools

# A number that is given: refused before tools are fetched and anything is built, which takes minutes.
whole-%:
	@[[ '$($*)' =~ ^([1-9][0-9]*$(if $(filter SEED FROM,$*),|0))?$$ ]] || \
		{ echo 'error: $* is a whole number, from $(if $(filter SEED FROM,$*),0,1) on' >&2; exit 1; }

binaries:
	cargo build --locked --workspace --exclude claimant-bench --bins
