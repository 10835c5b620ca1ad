#!/bin/sh
# Builds the Java driver with the real ElasticJob (dev/interop/java), which `make test-java` needs, into target/interop. Installs Maven and a JDK with apt if
# they are missing. Exits with 75 if Maven or its repository is not reachable, so that callers can distinguish that from an error in the code.
set -eu
cd "$(dirname "$0")/.."
output=$(mkdir -p "${CARGO_TARGET_DIR:-target}/interop" && cd "${CARGO_TARGET_DIR:-target}/interop" && pwd)

# Nothing to do if nothing has changed since the last build.
sum=$(find dev/interop/java -type f | LC_ALL=C sort | xargs cat | cksum)
[ "$(cat "$output/built" 2>/dev/null)" != "$sum" ] || exit 0
# Maven copies a resource only if it is newer than the copy, so the copy of another checkout would stay.
rm -rf "$output/built" "$output/classes" "$output/old/classes"

unreachable() { # <reason>
    line='######################################################################'
    {
        echo "$line"
        echo "#  NOT RUN: mixed clusters with the real ElasticJob."
        echo "#  $1"
        echo "$line"
    } >&2
    exit 75
}

if ! command -v mvn >/dev/null || ! command -v javac >/dev/null; then
    { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; } ||
        unreachable "Maven or a JDK is missing; hint: sudo apt-get install maven default-jdk-headless"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update && apt-get install -y --no-install-recommends maven default-jdk-headless; } ||
        unreachable "Maven and a JDK could not be installed with apt-get."
fi

log=$output/maven.log
if ! { mvn -B -q -U -f dev/interop/java/pom.xml "-Doutput=$output" compile &&
    mvn -B -q -U -f dev/interop/java/old/pom.xml "-Doutput=$output/old" compile; } >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    # Maven has no exit code for an unreachable repository, so recognise it by the log.
    grep -q 'COMPILATION ERROR' "$log" && exit 1
    unreachable "Maven could not download ElasticJob; its output is above and in $log."
fi
echo "$sum" >"$output/built"
