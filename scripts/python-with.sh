#!/bin/sh
# python-with.sh NAME REQUIREMENTS: prints the path of a Python interpreter with the packages that a requirements.txt pins, for tests that use our servers
# from Python. It is in a virtual environment under target/, which is created the first time and whenever the requirements change.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
pinned=$root/$2
venv=$root/target/$1-venv

fail() {
    echo "$1" >&2
    exit 1
}

# The copy of the requirements is written last, so an environment that has it is complete.
if ! cmp -s "$pinned" "$venv/requirements.txt"; then
    mkdir -p "$root/target"
    # Created in a temporary folder and moved into place, because two test runs may do this at the same time.
    new=$(mktemp -d "$venv.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    python3 -m venv "$new" >/dev/null 2>&1 ||
        fail "python3 cannot create a virtual environment; hint: sudo apt-get install python3-venv"
    "$new/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 -r "$pinned" >"$new/pip.log" 2>&1 ||
        fail "cannot install $(cat "$pinned"): $(tail -n 1 "$new/pip.log"); hint: is PyPI reachable?"
    cp "$pinned" "$new/requirements.txt"
    if ! cmp -s "$pinned" "$venv/requirements.txt"; then
        rm -rf "$venv"
        mv "$new" "$venv"
    fi
fi

echo "$venv/bin/python"
