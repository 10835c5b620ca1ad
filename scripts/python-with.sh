#!/bin/sh
# python-with.sh NAME REQUIREMENTS: prints the path of a Python that has what a requirements.txt pins,
# for tests that talk to our servers from there. It lives in a virtual environment under target/, which is made
# the first time and whenever what is pinned changes.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
pinned=$root/$2
venv=$root/target/$1-venv

fail() {
    echo "$1" >&2
    exit 1
}

# The copy is written last, so an environment that has it is complete.
if ! cmp -s "$pinned" "$venv/requirements.txt"; then
    mkdir -p "$root/target"
    # Made aside and moved into place: two test runs may be at it at once.
    new=$(mktemp -d "$venv.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    python3 -m venv "$new" >/dev/null 2>&1 ||
        fail "python3 cannot make a virtual environment: sudo apt-get install python3-venv"
    "$new/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 -r "$pinned" >"$new/pip.log" 2>&1 ||
        fail "cannot install $(cat "$pinned"): $(tail -n 1 "$new/pip.log"); hint: is PyPI in reach?"
    cp "$pinned" "$new/requirements.txt"
    if ! cmp -s "$pinned" "$venv/requirements.txt"; then
        rm -rf "$venv"
        mv "$new" "$venv"
    fi
fi

echo "$venv/bin/python"
