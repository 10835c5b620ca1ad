#!/usr/bin/env python3
"""Measures how long the project takes to build, prints the times, and fails if they exceed the limits.

  build-times.py            everything: a cold build of what `make run` builds, a rebuild after a change of one file, crates by features
  build-times.py --counts   only the crates that a program links for each set of features

It measures processor time, which other work on the machine hardly changes: cargo calls rustc through this file (RUSTC_WRAPPER).
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

# Limits in processor seconds; in elapsed seconds for the rebuild, because a developer waits for it.
SLOWEST_CRATE = 45
COLD_BUILD = 6 * 60
REBUILD = 25
TOUCHED = "crates/elasticjob-console/src/jobs/routes.rs"

# Limits of the number of crates that a program links, for each set of features of the library, so that new dependencies are noticed.
CRATES = {
    "minimal": (["--no-default-features"], 70),
    "default": ([], 130),
    "history-sqlite": (["--features", "history-sqlite"], 180),
    "all databases": (["--features", "history"], 200),
}


def wrap(command):
    """Called by cargo in place of rustc: runs it and records its time."""
    started = time.monotonic()
    # The compiler uses cargo's job tokens through inherited file descriptors.
    status = subprocess.run(command, check=False, close_fds=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    name = command[command.index("--crate-name") + 1] if "--crate-name" in command else None
    if name and name != "___":
        entry = {"crate": name, "cpu": used.ru_utime + used.ru_stime, "wall": time.monotonic() - started}
        with open(os.environ[LOG], "a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
    return status


def cargo(*arguments, target, log):
    """Runs cargo; returns the processor time of all its processes and the elapsed time, in seconds."""
    environment = dict(os.environ, RUSTC_WRAPPER=os.path.abspath(__file__), CARGO_TARGET_DIR=target)
    environment[LOG] = log
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(["cargo", *arguments], cwd=ROOT, env=environment, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.monotonic() - started


def workspace_crates():
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
    problems = []

    def row(name, value, limit, unit):
        print(f"  {name:<44} {value:>8.1f} {unit:<4} (limit {limit})" if limit else f"  {name:<44} {value:>8.1f} {unit}")
        if limit and value > limit:
            problems.append(f"{name}: {value:.1f} {unit}, the limit is {limit}")

    print("crates that a program links, by features of the library")
    for name, (arguments, limit) in CRATES.items():
        row(name, crate_count(arguments), limit, "")
    if "--counts" not in sys.argv:
        measure(row)
    for problem in problems:
        print(f"build-times: {problem}", file=sys.stderr)
    return 1 if problems else 0


def measure(row):
    folder = tempfile.mkdtemp(prefix="build-times-")
    log = os.path.join(folder, "rustc.jsonl")
    try:
        cpu, wall = cargo("build", "--quiet", "--locked", "--profile", "quick", "-p", "elasticjob-cli", target=folder, log=log)
        with open(log, encoding="utf-8") as lines:
            crates = [json.loads(line) for line in lines]
        own_names = workspace_crates()
        print("a cold build of what `make run` runs (profile quick, without the pages)")
        row("processor time", cpu, COLD_BUILD, "s")
        row("elapsed time", wall, None, "s")
        own = sorted((c for c in crates if c["crate"] in own_names), key=lambda c: -c["cpu"])
        for crate in own:
            row(f"  own: {crate['crate']}", crate["cpu"], SLOWEST_CRATE, "s")
        others = sorted((c for c in crates if c["crate"] not in own_names), key=lambda c: -c["cpu"])
        for crate in others[:5]:
            row(f"  {crate['crate']}", crate["cpu"], None, "s")
        row(f"  the other {len(others) - 5} crates", sum(c["cpu"] for c in others[5:]), None, "s")
        row("  C code, build scripts, cargo", cpu - sum(c["cpu"] for c in crates), None, "s")

        debug = os.path.join(folder, "debug-target")
        build = ("build", "--quiet", "--locked", "-p", "elasticjob-cli")
        cargo(*build, target=debug, log=log)
        os.utime(os.path.join(ROOT, TOUCHED))
        cpu, wall = cargo(*build, target=debug, log=log)
        print(f"a rebuild (profile dev) after a change of {TOUCHED}")
        row("elapsed time", wall, REBUILD, "s")
        row("processor time", cpu, None, "s")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    # As RUSTC_WRAPPER, the first argument is the compiler.
    if LOG in os.environ and len(sys.argv) > 1 and os.path.basename(sys.argv[1]).startswith("rustc"):
        sys.exit(wrap(sys.argv[1:]))
    sys.exit(main())
