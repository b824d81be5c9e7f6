# make setup | up | demo | test | check | bench | clean

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

UV_VERSION := 0.13.9
UV := .tools/bin/uv
BIN := .venv/bin
ARGS ?=
export UV_SYSTEM_CERTS := true
unexport VIRTUAL_ENV

SYSTEM_PACKAGES := bubblewrap nftables iproute2 util-linux curl jq gcc libc6-dev musl-tools libseccomp2 libnftables1 \
	python3-venv ca-certificates
BENCH_PACKAGES := nginx-light wrk

PROJECTS := uv.lock pyproject.toml $(wildcard libs/*/pyproject.toml services/*/pyproject.toml)
CHECKED := libs services tests $(if $(wildcard examples/*.py),examples) $(if $(wildcard bench/*.py),bench)

# Installs, as root and on Debian, those of the given packages that are missing; otherwise says what is missing.
define install_missing
@command -v dpkg-query >/dev/null || { echo "not Debian: make sure of $(1)"; exit 0; }; \
missing=$$(for package in $(1); do \
	[ "$$(dpkg-query -W -f '$${db:Status-Status}' $$package 2>/dev/null || true)" = installed ] || echo $$package; \
done); \
[ -z "$$missing" ] && exit 0; \
[ "$$(id -u)" = 0 ] || { echo "missing packages, install them as root: apt-get install" $$missing >&2; exit 1; }; \
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1; \
apt-get update -q && apt-get install -q -y --no-install-recommends $$missing
endef

.PHONY: help setup packages up demo test check bench clean

help:  ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: packages .venv/.synced  ## Install what is missing: Debian packages, uv, the locked Python packages

packages:
	$(call install_missing,$(SYSTEM_PACKAGES))

.tools/.uv-$(UV_VERSION): | packages
	python3 -m venv .tools
	.tools/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	touch $@

.venv/.synced: $(PROJECTS) .tools/.uv-$(UV_VERSION)
	$(UV) sync --frozen --inexact
	touch $@

up: setup  ## Run the whole plane here until Ctrl-C; ARGS="--runners 2 --port 8080"
	$(BIN)/python -m caisson.stack $(ARGS)

demo: setup  ## Show what Caisson is for, in one minute
	$(BIN)/python examples/demo.py

test: setup  ## Run every test; ARGS="tests/unit" for some
	$(BIN)/pytest $(ARGS)

check: setup  ## Format, lint, types, import boundaries
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy $(CHECKED)
	$(BIN)/lint-imports --no-logo

bench: setup  ## Measure, and hold the results against the targets
	$(call install_missing,$(BENCH_PACKAGES))
	$(UV) sync --frozen --inexact --group bench
	$(BIN)/python -m bench $(ARGS)

clean:  ## Remove what setup and the tools made; data in .caisson stays
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
