# The front door; Meson does the work. `make demo` and `make check` install what is missing.

BUILD ?= build
SANITIZED = build-sanitized

.PHONY: build demo check corpus soak bench bench-run bench-pmu bench-pfm fuzz install clean packages

build: packages $(BUILD)/build.ninja
	@ninja -C $(BUILD)

packages:
	@tests/install-packages

$(BUILD)/build.ninja:
	@meson setup $(BUILD) -Dwerror=true

$(SANITIZED)/build.ninja:
	@CC=clang meson setup $(SANITIZED) -Dwerror=true -Dfuzz=true -Db_lundef=false \
		-Db_sanitize=address,undefined -Ddefault_library=static

# Without the tests, which take longer to build than all the rest.
demo: packages $(BUILD)/build.ninja
	@ninja -C $(BUILD) tally tally-tools.so tally-rt
	@bench/demo $(BUILD)/tally

check: build $(SANITIZED)/build.ninja
	@ninja -C $(SANITIZED)
	@tests/run.py $(BUILD) $(SANITIZED)

bench: build
	@bench/run $(BUILD)

# Real programs natively and under tally run: as they are, as in a container,
# and without perf events.
corpus: build
	@tests/corpus/all $(BUILD)

# The same in random order, with signals from outside; before that, timers, signals and threads.
soak: build
	@TALLY=$(BUILD)/tally tests/corpus/soak.py --minutes $(or $(MINUTES),60) \
		--endure $(BUILD)/tests/corpus/endure

bench-run: build
	@bench/run_all $(BUILD)

# QUICK=1: fewer programs, once, and without cachegrind.
bench-pmu: build
	@bench/pmu $(BUILD) $(if $(QUICK),--quick)

bench-pfm: build
	@BUILD=$(BUILD) bench/pfm

fuzz: build $(SANITIZED)/build.ninja
	@ninja -C $(SANITIZED)
	@tests/fuzz/run $(SANITIZED)
	@tests/fuzz/translate $(BUILD)
	@python3 tests/conformance/differential.py --seconds 300 --seeds $$(date +%s) \
		$(BUILD)/tests/conformance/differential $(BUILD)/tally run --host=never --
	@python3 tests/conformance/differential.py --seconds 300 --seeds $$(date +%s) \
		$(BUILD)/tests/conformance/differential $(BUILD)/tally run --
	@TALLY=$(BUILD)/tally tests/fuzz/hostile_test.py $(BUILD)/tests/fuzz/hostile \
		$(BUILD)/tests/fuzz/arena-use 600

install: build
	@meson install -C $(BUILD)

clean:
	rm -rf $(BUILD) $(SANITIZED)
