#!/bin/sh
# `make ci`: runs every check, one after the other. A part that exits with 75 could not run here and has printed the reason. Any other failure is reported
# at the end, after all parts have run, so that one run shows all problems.
set -u
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
table=$target/ci-parts.txt
: >"$table"
failed=
all=0

part() { # <name> <command>...
    name=$1
    shift
    printf '\n===== %s\n' "$name"
    started=$(date +%s)
    "$@"
    status=$?
    seconds=$(($(date +%s) - started))
    all=$((all + seconds))
    case $status in
    0) result=ok ;;
    75) result='NOT RUN' ;;
    *)
        result=FAILED
        failed="$failed $name"
        ;;
    esac
    printf '%-12s %5d s   %s\n' "$name" "$seconds" "$result" >>"$table"
}

node() { # <command>...: needs Node
    command -v npm >/dev/null || {
        echo "NOT RUN: Node 20 or newer is not installed" >&2
        return 75
    }
    "$@"
}

browser() { # <command>...: needs Chromium, which apt installs
    scripts/install-chromium.sh || {
        echo "NOT RUN: Chromium is missing and cannot be installed" >&2
        return 75
    }
    node "$@"
}

java() {
    scripts/build-java-driver.sh
    status=$?
    [ "$status" -eq 0 ] || return "$status"
    make --no-print-directory test-java
}

python() { # <name> <requirements> <command>...: needs packages from PyPI
    scripts/python-with.sh "$1" "$2" >/dev/null || {
        echo "NOT RUN: $1 cannot be installed from PyPI" >&2
        return 75
    }
    shift 2
    "$@"
}

part lint make --no-print-directory lint
part deny make --no-print-directory deny
part crates scripts/build-times.py --counts
part pages node make --no-print-directory web check-web
part test make --no-print-directory test
part browser browser make --no-print-directory test-web
part api python schemathesis crates/elasticjob-cli/tests/schemathesis/requirements.txt make --no-print-directory test-api
part java java
part package make --no-print-directory package

printf '\n===== parts\n'
cat "$table"
printf '%-12s %5d s\n' all "$all"
[ -z "$failed" ] || {
    echo "failed:$failed" >&2
    exit 1
}
