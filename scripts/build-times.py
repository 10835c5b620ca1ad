#!/usr/bin/env python3
"""Measures how long the project takes to build, prints it, and fails above the bars.

  build-times.py            everything: a cold build of what `make run` builds, a rebuild after one file was touched, crates by features
  build-times.py --counts   only the crates that a program links for each set of features

Processor time is measured, which other work on the machine hardly changes: cargo is told to call rustc through this file.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOG = "BUILD_TIMES_LOG"

# In processor seconds, but for the rebuild, which somebody waits for.
SLOWEST_CRATE = 45
COLD_BUILD = 6 * 60
REBUILD = 25
TOUCHED = "crates/elasticjob-console/src/jobs/routes.rs"

# Crates that a program links, for each set of features of the library; a new dependency is meant to be noticed.
CRATES = {
    "minimal": (["--no-default-features"], 70),
    "default": ([], 130),
    "history-sqlite": (["--features", "history-sqlite"], 180),
    "all databases": (["--features", "history"], 200),
}


def wrap(command):
    """Called by cargo in place of rustc: runs it, and writes down what it took."""
    begun = time.monotonic()
    # The compiler shares cargo's tokens through inherited descriptors.
    status = subprocess.run(command, check=False, close_fds=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    name = command[command.index("--crate-name") + 1] if "--crate-name" in command else None
    if name and name != "___":
        entry = {"crate": name, "cpu": used.ru_utime + used.ru_stime, "wall": time.monotonic() - begun}
        with open(os.environ[LOG], "a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
    return status


def cargo(*arguments, target, log):
    """Runs cargo; what it and everything below it took, in seconds."""
    environment = dict(os.environ, RUSTC_WRAPPER=os.path.abspath(__file__), CARGO_TARGET_DIR=target)
    environment[LOG] = log
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(["cargo", *arguments], cwd=ROOT, env=environment, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.monotonic() - begun


def ours():
    """The names of the crates of this workspace, as rustc knows them."""
    output = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT, check=True, capture_output=True
    )
    names = set()
    for package in json.loads(output.stdout)["packages"]:
        names.add(package["name"].replace("-", "_"))
        names.update(target["name"].replace("-", "_") for target in package["targets"] if "bin" in target["kind"])
    return names


def crate_count(arguments):
    output = subprocess.run(
        ["cargo", "tree", "-p", "elasticjob", "-e", "normal", "--prefix", "none", *arguments],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )
    lines = (line.split(" (")[0].strip() for line in output.stdout.splitlines())
    return len({line for line in lines if line}) - 1


def main():
    wrong = []

    def row(what, value, bar, unit):
        print(f"  {what:<44} {value:>8.1f} {unit:<4} (bar {bar})" if bar else f"  {what:<44} {value:>8.1f} {unit}")
        if bar and value > bar:
            wrong.append(f"{what}: {value:.1f} {unit}, and the bar is {bar}")

    print("crates that a program links, by features of the library")
    for name, (arguments, bar) in CRATES.items():
        row(name, crate_count(arguments), bar, "")
    if "--counts" not in sys.argv:
        measure(row)
    for problem in wrong:
        print(f"build-times: {problem}", file=sys.stderr)
    return 1 if wrong else 0


def measure(row):
    folder = tempfile.mkdtemp(prefix="build-times-")
    log = os.path.join(folder, "rustc.jsonl")
    try:
        cpu, wall = cargo("build", "--quiet", "--locked", "--profile", "quick", "-p", "elasticjob-cli", target=folder, log=log)
        with open(log, encoding="utf-8") as lines:
            crates = [json.loads(line) for line in lines]
        mine = ours()
        print("a cold build of what `make run` runs (profile quick, without the pages)")
        row("processor time", cpu, COLD_BUILD, "s")
        row("from beginning to end", wall, None, "s")
        own = sorted((c for c in crates if c["crate"] in mine), key=lambda c: -c["cpu"])
        for crate in own:
            row(f"  ours: {crate['crate']}", crate["cpu"], SLOWEST_CRATE, "s")
        others = sorted((c for c in crates if c["crate"] not in mine), key=lambda c: -c["cpu"])
        for crate in others[:5]:
            row(f"  {crate['crate']}", crate["cpu"], None, "s")
        row(f"  the other {len(others) - 5} crates", sum(c["cpu"] for c in others[5:]), None, "s")
        row("  C code, build scripts, cargo", cpu - sum(c["cpu"] for c in crates), None, "s")

        debug = os.path.join(folder, "debug-target")
        build = ("build", "--quiet", "--locked", "-p", "elasticjob-cli")
        cargo(*build, target=debug, log=log)
        os.utime(os.path.join(ROOT, TOUCHED))
        cpu, wall = cargo(*build, target=debug, log=log)
        print(f"a rebuild in dev after {TOUCHED} was touched")
        row("from beginning to end", wall, REBUILD, "s")
        row("processor time", cpu, None, "s")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    # As RUSTC_WRAPPER, the first argument is the compiler.
    if LOG in os.environ and len(sys.argv) > 1 and os.path.basename(sys.argv[1]).startswith("rustc"):
        sys.exit(wrap(sys.argv[1:]))
    sys.exit(main())
