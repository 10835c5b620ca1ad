#!/bin/sh
# `make deny`: cargo-deny with deny.toml. Installs it from crates.io where it is missing. Ends with 75 when it cannot be had.
set -eu
cd "$(dirname "$0")/.."
version=0.20.2

if ! cargo deny --version 2>/dev/null | grep -q " $version\$"; then
    # Without optimisation: it is built in a fraction of the time and runs for seconds.
    cargo install --quiet --locked --debug --version "$version" cargo-deny || {
        echo "NOT RUN: cargo-deny $version cannot be installed from crates.io" >&2
        exit 75
    }
fi
cargo deny --log-level warn check licenses bans sources
# The database of advisories is a git repository: on a closed network it cannot be reached.
if cargo deny --log-level error fetch db 2>/dev/null; then
    cargo deny --log-level warn check advisories
else
    echo "NOT RUN: advisories (their database cannot be fetched from here)" >&2
fi
