# `make` lists the targets. The most important ones are `make run` and `make test`.
CARGO ?= cargo
SEEDS ?= 2000
LISTEN ?= 127.0.0.1:2181
ROWS ?= 10000000
CASES ?= 100000
AWAY ?= 60
# What has been built is run from here: `cargo run -p bench` would build everything again, with the features that bench alone selects.
BUILT = $${CARGO_TARGET_DIR:-target}
LIBRARIES = quartz-cron tinykeeper elasticjob-macros elasticjob elasticjob-jobfile

# The simulated cluster: only the crates it spends its time in are rebuilt with optimisation.
QUICK = $(foreach crate,elasticjob tinykeeper granit-parser jiff,--config profile.dev.package.$(crate).opt-level=2)
SIMULATE = $(CARGO) $(QUICK) test -p elasticjob --all-features --test simulation -- --ignored

.DEFAULT_GOAL := help
.PHONY: help run dist web test test-docs test-java test-web test-api check-web lint deny build-times bench sim million outage chaos fuzz soak cron-java bench-java package ci

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

run: $(if $(shell command -v npm),web,no-pages) ## build, then run a demo: a registry on 127.0.0.1:2181 and workers to watch and kill; LISTEN=host:port for another address
	$(CARGO) run --profile quick -p elasticjob-cli -- dev --demo --registry-listen $(LISTEN)

dist: $(if $(shell command -v npm),web,no-pages) ## the binary to ship, optimised across crates: target/dist/elasticjob
	$(CARGO) build --profile dist --locked -p elasticjob-cli

# The console's pages. Their dependencies are installed only when they have changed: as locked, but without `npm ci`, which refuses a lock file that does
# not list the packages of other platforms.
WEB = crates/elasticjob-console/web
WEB_SOURCES = $(shell find $(WEB)/src $(WEB)/public -type f) $(WEB)/index.html $(WEB)/vite.config.ts $(WEB)/tsconfig.json

web: $(WEB)/dist/index.html ## build the console's pages (Node 20 or newer); the binary embeds them

$(WEB)/node_modules/.package-lock.json: $(WEB)/package.json $(WEB)/package-lock.json
	cd $(WEB) && npm install --no-save --no-audit --no-fund
	@touch $@

$(WEB)/dist/index.html: $(WEB)/node_modules/.package-lock.json $(WEB_SOURCES)
	cd $(WEB) && npm run build

.PHONY: no-pages
no-pages:
	@echo "Node is not installed, so the console has an API but no pages; hint: install Node 20 or newer (https://nodejs.org), then make web"

check-web: $(WEB)/node_modules/.package-lock.json ## the pages' type check, linter and unit tests
	cd $(WEB) && npm run check && npm test

test-web: web ## a real browser on `dev --demo`; installs chromium (apt) or reports what is missing
	@scripts/install-chromium.sh
	$(CARGO) build -p elasticjob-cli
	cd $(WEB) && npm run e2e

test: ## every test of the Rust code; installs the servers that they need (apt) or reports what is missing
	@scripts/install-test-servers.sh
	scripts/run-tests.py --workspace --exclude interop --all-features -- --include-ignored --skip seeds::
	SEEDS=$(SEEDS) $(SIMULATE)
	@$(MAKE) --no-print-directory test-docs

test-docs: ## the examples in the documentation
	$(CARGO) test --workspace --all-features --no-fail-fast --doc

# Options of schemathesis in ONLY: for example ONLY="--include-path /api/v1/cron/next".
test-api: ## schemathesis tests everything in the console's OpenAPI description, on `dev --demo`: two minutes; installs it (PyPI) or reports what is missing
	@python=$$(scripts/python-with.sh schemathesis crates/elasticjob-cli/tests/schemathesis/requirements.txt) && \
	$(CARGO) build -p elasticjob-cli && \
	$$python crates/elasticjob-cli/tests/schemathesis/run.py "$${CARGO_TARGET_DIR:-target}/debug/elasticjob" $(ONLY)

# Four tests at a time: each has a JVM or two, which wait most of the time.
test-java: ## Rust and the real ElasticJob in one job; installs Maven and a JDK (apt), fails if ElasticJob cannot be downloaded, unless MAVEN=optional
	@scripts/install-test-servers.sh
	@scripts/build-java-driver.sh || { [ $$? -eq 75 ] && [ "$(MAVEN)" = optional ]; }
	@if [ -e "$${CARGO_TARGET_DIR:-target}/interop/built" ]; then \
		$(CARGO) build -p elasticjob-cli && \
		$(CARGO) test -p interop -- --include-ignored --test-threads=4; \
	fi

cron-java: ## compare CASES random expressions (default 100,000) with the real Quartz, 2.3.2 and 2.4.0; SEED=n for others
	@scripts/build-java-driver.sh
	CASES=$(CASES) SEED=$(SEED) $(CARGO) test -p interop --test cron -- --include-ignored --nocapture

lint: ## formatting, words, clippy and rustdoc, warnings are errors
	scripts/check-words.py
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	$(CARGO) clippy -p tinykeeper --no-default-features -- -D warnings
	$(CARGO) clippy -p elasticjob -- -D warnings
	$(CARGO) clippy -p elasticjob --no-default-features -- -D warnings
	$(CARGO) clippy -p elasticjob --no-default-features --features history-sqlite -- -D warnings
	$(CARGO) clippy -p elasticjob --no-default-features --features history-postgres,tls -- -D warnings
	$(CARGO) clippy -p elasticjob-jobfile --no-default-features -- -D warnings
	$(CARGO) clippy -p elasticjob-cli --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --all-features --no-deps

deny: ## licences, sources and duplicates of the dependencies; advisories if their database is reachable
	@scripts/deny.sh

build-times: ## times of a cold build by crate and of a rebuild, number of crates by features; seven minutes, fails above the limits
	scripts/build-times.py

# PAGES= measures without writing the pages, ONLY="burst join" runs some of them. The fleet and the cost model take several minutes each.
PAGES = --page docs/performance.md
ONLY_BENCH = $(or $(ONLY),registry jobs burst join history-burst fleet scale worker fires history console)

bench: $(if $(shell command -v npm),web,no-pages) ## tinykeeper and its client against the real ZooKeeper, ten thousand jobs that join or are due at once, with history, a fleet, the cost model, a worker, a fire, the console: prints tables with former numbers, writes them into docs/performance.md and docs/scale.md, fails if a target is missed; ONLY="burst join" for some, PAGES= to write nothing
	@scripts/install-test-servers.sh
	$(CARGO) build --profile dist -p tinykeeper -p elasticjob-cli -p bench
	@failed=; for benchmark in $(ONLY_BENCH); do \
		case $$benchmark in \
			burst|join|history-burst|fleet) options="$(PAGES)" ;; \
			scale) options="$(if $(PAGES),--page docs/scale.md)" ;; \
			*) options= ;; \
		esac; \
		echo "bench $$benchmark"; \
		$(BUILT)/dist/bench $$benchmark $$options || failed="$$failed $$benchmark"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

bench-java: ## comparison with the real Java ElasticJob on one ZooKeeper, twenty-five minutes: prints tables and writes docs/performance.md, fails if a target is missed; BRIEF=1 for a short check
	@scripts/install-test-servers.sh
	@scripts/build-java-driver.sh
	$(CARGO) build --profile dist -p interop -p bench
	$(BUILT)/dist/bench java $(if $(BRIEF),--brief,--page docs/performance.md)

ifdef SEED
sim: ## the seeded tests with SEEDS random cases each (default 2000); SEED=7 shows the timeline of one simulated cluster
	SEED=$(SEED) $(SIMULATE) every_seed --nocapture
else
sim:
	PROPTEST_CASES=$(SEEDS) $(CARGO) test --release -p tinykeeper --lib --test server -- tree:: store:: decoding::
	PROPTEST_CASES=$(SEEDS) $(CARGO) test --release -p quartz-cron --test schedule -- properties
	PROPTEST_CASES=$(SEEDS) $(CARGO) test --release -p elasticjob --lib --test job_wire -- strategy:: properties arbitrary
	SEEDS=$(SEEDS) $(SIMULATE)
endif

million: ## queries on a history of ROWS executions (default 10 million; make test uses a million)
	HISTORY_ROWS=$(ROWS) $(CARGO) test --release -p elasticjob --all-features --test history_million -- --nocapture

outage: ## history databases that are down for AWAY seconds (default 60) under load: no event is missing afterwards; make test uses ten seconds
	@scripts/install-test-servers.sh
	HISTORY_OUTAGE=$(AWAY) $(CARGO) test -p elasticjob --all-features --test history_outage -- --include-ignored --nocapture

chaos: ## workers killed, frozen and disconnected for MINUTES (default 5), on a real ensemble and database; SEED=n to repeat a storm
	@scripts/install-test-servers.sh
	$(CARGO) run --release -p chaos -- storm --minutes $(or $(MINUTES),5) $(if $(SEED),--seed $(SEED))

# TARGETS="yaml cron" for some of them.
fuzz: ## fuzz everything that reads bytes from outside, MINUTES for each target (default 1): prints a table, fails with each find; reports what is missing
	dev/fuzz/run.py --minutes $(or $(MINUTES),1) $(TARGETS)

soak: ## console, three workers and ZooKeeper under load for MINUTES (default 60): fails if memory, files, threads or tasks grow; PAGE=docs/dev/soak.md writes the table, REGISTRY=tinykeeper for the other registry
	@scripts/install-test-servers.sh
	$(CARGO) build --release -p tinykeeper -p elasticjob-cli -p bench
	$(BUILT)/release/bench soak --minutes $(or $(MINUTES),60) $(if $(REGISTRY),--registry $(REGISTRY)) $(if $(PAGE),--page $(PAGE))

package: ## check that the library crates can be published
	scripts/check-packages.sh $(LIBRARIES)

ci: ## every check, part by part, with the time of each; a part that cannot run here prints NOT RUN and the reason
	@scripts/ci.sh
