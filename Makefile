# make bench     the load line of rust-axum-plain on this machine, quickly
# make test      formatters, linters, unit, property and end-to-end tests, and the tests of the targets that changed
# make test-all  the same with the tests of all targets, the long ones, and the release; writes to targets/tested.txt what passed
# make test-targets  the tests of the targets that changed, alone; writes what passed to the same file
# make test-cluster  the chart on a Kubernetes of one node, which it builds, starts and ends; needs root
# make build     the command, at target/release/plimsoll
# make release   binaries, manual pages and completions in one archive, at target/dist
#
# These commands install what is missing, and say so before they do. PLIMSOLL_INSTALL=no forbids it.

PLIMSOLL = target/release/plimsoll
# A whole core, as docs/explanation/cpu-and-isolation.md explains. A fraction: make bench BENCH_VCPU=0.25
BENCH_VCPU = 1

# Where rustup puts cargo: a shell that was started before Rust was installed does not have it in its path.
export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: build bench test test-all test-targets test-cluster calibrate release tools

build: tools
	cargo build --release --locked -p plimsoll -p plimsoll-inference -p plimsoll-providers

bench: build
	$(PLIMSOLL) doctor || true
	$(PLIMSOLL) find rust-axum-plain --profile quick --vcpu $(BENCH_VCPU)

calibrate: build
	$(PLIMSOLL) calibrate

test:
	@sh scripts/install-tools.sh test
	sh scripts/test.sh

test-all:
	@sh scripts/install-tools.sh test
	sh scripts/test.sh all

test-targets:
	@sh scripts/install-tools.sh test
	sh scripts/test.sh targets

test-cluster:
	@sh scripts/install-tools.sh test
	sh scripts/cluster/test.sh

release: tools
	sh scripts/release.sh

tools:
	@sh scripts/install-tools.sh
