#!/usr/bin/env python3
"""Runs the fuzz targets one after another and prints a table; exits with 1 if an input broke a promise.

Seeds are in dev/fuzz/corpus. What a run learns stays in target/fuzz/corpus and is used by the next one; inputs that broke something are in
target/fuzz/finds. A stable compiler suffices: coverage is instrumented by LLVM, and libFuzzer is compiled by the crate libfuzzer-sys, which needs
a C++ compiler.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "fuzz"
TRIPLE = "x86_64-unknown-linux-gnu" if os.uname().machine == "x86_64" else "aarch64-unknown-linux-gnu"

# The longest input of each target, in bytes.
TARGETS = {
    "wire": 4096,
    "server": 4096,
    "yaml": 8192,
    "json": 4096,
    "xml": 4096,
    "properties": 4096,
    "toml": 4096,
    "stored": 16384,
    "ledger": 4096,
    "trigger": 4096,
    "cron": 256,
    "url": 1024,
    "api": 2048,
}

FLAGS = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
]


def build():
    """Builds the program that holds all targets, and returns its path."""
    if not shutil.which(os.environ.get("CXX", "c++")):
        sys.exit("libFuzzer needs a C++ compiler, and there is no c++; hint: apt-get install g++")
    environment = {**os.environ, "RUSTFLAGS": " ".join(FLAGS)}
    # With a target named, build scripts and macros are not instrumented.
    command = [os.environ.get("CARGO", "cargo"), "build", "--locked", "--target", TRIPLE, "--target-dir", str(WORK)]
    subprocess.run(command, cwd=HERE, env=environment, check=True)
    return WORK / TRIPLE / "debug" / "fuzz"


def fuzz(program, target, seconds):
    """Runs one target; returns the row of the table, and the inputs that broke something."""
    learned, finds = WORK / "corpus" / target, WORK / "finds" / target
    learned.mkdir(parents=True, exist_ok=True)
    finds.mkdir(parents=True, exist_ok=True)
    before = set(finds.iterdir())
    log = WORK / f"{target}.log"
    command = [
        str(program),
        str(learned),
        str(HERE / "corpus" / target),
        f"-max_total_time={seconds}",
        f"-max_len={TARGETS[target]}",
        f"-artifact_prefix={finds}/",
        "-rss_limit_mb=3072",
        "-timeout=30",
        "-print_final_stats=1",
    ]
    dictionary = HERE / "dictionaries" / target
    if dictionary.exists():
        command.append(f"-dict={dictionary}")
    with open(log, "w") as output:
        subprocess.run(command, env={**os.environ, "FUZZ_TARGET": target}, stdout=output, stderr=subprocess.STDOUT)
    text = log.read_text(errors="replace")
    status = re.findall(r"^#(\d+)\s.*?cov: (\d+) ft: (\d+) corp: (\d+)/(\S+)", text, re.M)
    _, coverage, features, inputs, size = status[-1] if status else ("0", "0", "0", "0", "0b")
    executed = re.findall(r"stat::number_of_executed_units:\s*(\d+)", text)
    executed = executed[-1] if executed else (status[-1][0] if status else "0")
    # A slow input is kept beside the finds, and breaks nothing: every target has a limit for processor time.
    new = sorted(find for find in set(finds.iterdir()) - before if not find.name.startswith("slow-unit-"))
    if not status and not new:
        sys.exit(f"{target} did not start; see {log}")
    return (target, f"{int(executed):,}", coverage, features, f"{inputs} ({size})", str(len(new))), new, log


def replay(program, target):
    """Checks the seeds once, without fuzzing."""
    seeds = sorted(str(seed) for seed in (HERE / "corpus" / target).iterdir())
    command = [str(program), "-timeout=30", *seeds]
    return subprocess.run(command, env={**os.environ, "FUZZ_TARGET": target}, capture_output=True).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", help="default: all")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target; default 1, 0 only checks the seeds")
    parser.add_argument("--list", action="store_true", help="name the targets")
    options = parser.parse_args()
    if options.list:
        print("\n".join(TARGETS))
        return
    unknown = [target for target in options.targets if target not in TARGETS]
    if unknown:
        parser.error(f"{', '.join(unknown)} is no target; known are {', '.join(TARGETS)}")
    targets = options.targets or list(TARGETS)
    program = build()
    if options.minutes <= 0:
        broken = [target for target in targets if not replay(program, target)]
        print(f"seeds of {len(targets)} targets checked" if not broken else f"seeds break {', '.join(broken)}")
        sys.exit(1 if broken else 0)
    rows, found = [("target", "executions", "edges", "features", "corpus", "finds")], []
    for target in targets:
        row, new, log = fuzz(program, target, max(1, round(options.minutes * 60)))
        rows.append(row)
        found += [(target, find, log) for find in new]
        print(f"{target}: {row[1]} executions, {row[5]} finds", flush=True)
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) if index == 0 else cell.rjust(width) for index, (cell, width) in enumerate(zip(row, widths))))
    for target, find, log in found:
        print(f"\nFIND  {target}: {find}, explained at the end of {log}")
        print(f"      again: FUZZ_TARGET={target} {program} {find}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
