# make bench   the load line of rust-axum on this machine, quickly
# make test    everything: formatters, linters, unit, property and end-to-end tests, the targets' own tests
# make build   the command, at target/release/plimsoll

PLIMSOLL = target/release/plimsoll
# A quarter of a core for the target: one client core then reaches well beyond its edge. See docs/explanation/cpu-and-isolation.md.
BENCH_VCPU = 0.25

.PHONY: build bench test calibrate tools

build: tools
	cargo build --release --locked -p plimsoll -p plimsoll-inference

bench: build
	$(PLIMSOLL) doctor || true
	$(PLIMSOLL) find rust-axum --profile quick --vcpu $(BENCH_VCPU)

calibrate: build
	$(PLIMSOLL) calibrate

test: tools
	sh scripts/test.sh

tools:
	@sh scripts/install-tools.sh
