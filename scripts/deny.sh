#!/bin/sh
# `make deny`: runs cargo-deny with deny.toml. Installs it from crates.io if it is missing. Exits with 75 if it cannot be installed.
set -eu
cd "$(dirname "$0")/.."
version=0.20.2

if ! cargo deny --version 2>/dev/null | grep -q " $version\$"; then
    # Without optimisation: it builds in a fraction of the time and runs only for seconds.
    cargo install --quiet --locked --debug --version "$version" cargo-deny || {
        echo "NOT RUN: cargo-deny $version cannot be installed from crates.io" >&2
        exit 75
    }
fi
cargo deny --log-level warn check licenses bans sources
# The advisory database is a git repository, which is not reachable from a closed network.
if cargo deny --log-level error fetch db 2>/dev/null; then
    cargo deny --log-level warn check advisories
else
    echo "NOT RUN: advisories (the database cannot be fetched from here)" >&2
fi
