#!/usr/bin/env python3
"""Builds the tests that the arguments of cargo select, and runs their binaries in parallel.

  run-tests.py [--jobs N] [cargo test's arguments] [-- arguments of the test binaries]

Most tests wait for a session to expire or for a server to start. `cargo test` runs one binary after the other, so the machine idles; this script runs
several at once, the slowest first. Tests of one binary share a process as with `cargo test`: a binary with one ZooKeeper for all its tests still starts
only one. Tests that measure time or memory run alone, at the end: those in a module `alone`, and the binaries in ALONE. The script prints a line for each
binary and a total, and the output of binaries that fail.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time

# These measure time, threads or memory, which other tests would distort.
ALONE = {"thousand_jobs", "failover", "requests_per_fire", "history_million"}
# A binary that takes longer, in seconds, counts as stuck.
LIMIT = 20 * 60
LIBRARIES = subprocess.run(["rustc", "--print", "target-libdir"], check=True, capture_output=True, text=True).stdout.strip()
RESULT = re.compile(r"^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored", re.M)


def main():
    arguments = sys.argv[1:]
    jobs = 4
    if arguments[:1] == ["--jobs"]:
        jobs, arguments = int(arguments[1]), arguments[2:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    cargo, test = arguments[:split], arguments[split + 1 :]
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    durations_file = os.path.join(target, "test-durations.json")
    durations = load(durations_file)

    started = time.monotonic()
    binaries = build(cargo)
    print(f"built {len(binaries)} test binaries in {time.monotonic() - started:.0f} s", flush=True)
    # Binaries without a recorded duration come first: they may take long.
    binaries.sort(key=lambda binary: -durations.get(binary["name"], 1e9))
    together = [binary for binary in binaries if binary["target"] not in ALONE]
    alone = [binary for binary in binaries if binary["target"] in ALONE]

    results = []
    run_all(together, jobs, [*test, "--skip", "alone::"], results)
    run_all(alone, 1, test, results)
    run_all([binary for binary in together if has_alone(binary)], 1, [*test, "alone::"], results)
    durations.update({result["name"]: result["seconds"] for result in results})
    with open(durations_file, "w", encoding="utf-8") as file:
        json.dump(durations, file, indent=1, sort_keys=True)
    return report(results, time.monotonic() - started)


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def build(cargo):
    """Returns the test binaries, each with the folder that cargo would run it in."""
    command = ["cargo", "test", "--no-run", "--message-format=json-render-diagnostics", *cargo]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    binaries = []
    for line in process.stdout:
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or not message.get("executable"):
            continue
        target = message["target"]
        if message["profile"]["test"]:
            folder = os.path.dirname(message["manifest_path"])
            name = f"{os.path.basename(folder)} {target['name']}" + (" (unit)" if set(target["kind"]) & {"lib", "bin"} else "")
            binaries.append({"name": name, "target": target["name"], "folder": folder, "path": message["executable"]})
    if process.wait() != 0:
        sys.exit(process.returncode)
    return binaries


def has_alone(binary):
    listed = subprocess.run([binary["path"], "--list", "alone::"], env=environment_of(binary), capture_output=True, text=True, check=False)
    return ": test" in listed.stdout


def environment_of(binary):
    # Tests of a procedural macro are linked against the libraries of the compiler.
    libraries = [LIBRARIES, os.environ.get("LD_LIBRARY_PATH", "")]
    return dict(os.environ, CARGO_MANIFEST_DIR=binary["folder"], CARGO="cargo", LD_LIBRARY_PATH=":".join(filter(None, libraries)))


def run_all(binaries, jobs, test, results):
    waiting, lock = list(binaries), threading.Lock()

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                binary = waiting.pop(0)
            result = run(binary, test)
            with lock:
                results.append(result)
                show(result)

    workers = [threading.Thread(target=work) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def run(binary, test):
    started = time.monotonic()
    try:
        done = subprocess.run(
            [binary["path"], *test], cwd=binary["folder"], env=environment_of(binary), timeout=LIMIT, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )
        output, is_ok = done.stdout, done.returncode == 0
    except subprocess.TimeoutExpired as stuck:
        # Python returns bytes here, even in text mode.
        printed = stuck.stdout or b""
        output = printed if isinstance(printed, str) else printed.decode(errors="replace")
        output += f"\nkilled after {LIMIT} s"
        is_ok = False
    counts = [sum(int(group) for group in column) for column in zip(*RESULT.findall(output))] or [0, 0, 0]
    if not is_ok and not counts[1]:
        counts[1] = 1
    return {"name": binary["name"], "seconds": time.monotonic() - started, "is_ok": is_ok, "output": output, "counts": counts}


def show(result):
    passed, failed, ignored = result["counts"]
    summary = f"{passed} passed" + (f", {failed} FAILED" if failed else "") + (f", {ignored} ignored" if ignored else "")
    print(f"{'ok  ' if result['is_ok'] else 'FAIL'} {result['seconds']:6.1f} s  {result['name']:<40} {summary}", flush=True)
    notices = [line for line in result["output"].splitlines() if "NOT RUN" in line]
    for line in notices if result["is_ok"] else result["output"].splitlines():
        print(f"    {line}", flush=True)


def report(results, seconds):
    passed, failed, ignored = (sum(result["counts"][column] for result in results) for column in range(3))
    for result in results:
        if not result["is_ok"]:
            print(f"failed: {result['name']}")
    print(f"{len(results)} binaries in {seconds:.0f} s; sequentially {sum(result['seconds'] for result in results):.0f} s")
    print(f"{passed} passed, {failed} failed, {ignored} skipped")
    return 0 if passed and all(result["is_ok"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
