"""Starts `elasticjob dev --demo` with a history, waits until there is something to see, and lets schemathesis try everything its description names.

run.py BINARY [schemathesis options...]: for example --include-path /api/v1/cron/next.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
PATIENCE = 60
# One to two minutes on a quiet machine.
LONGEST = 600


def main() -> int:
    binary, options = os.path.abspath(sys.argv[1]), sys.argv[2:]
    # Whoever ends this ends the console, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    with tempfile.TemporaryDirectory() as folder:
        history = f"sqlite:{folder}/history.db"
        command = [binary, "dev", "--demo", "--registry-listen", "0", "--listen", "0", "--history", history]
        dev = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            console = told(dev)
            cookie, csrf = login(console)
            until_there_is_a_run(console, cookie)
            status = tried(console, cookie, csrf, options, folder)
            if dev.poll() is not None:
                sys.exit(f"the console ended: {dev.returncode}")
            ask(console, "/session", cookie)
            return status
        finally:
            dev.send_signal(signal.SIGTERM)
            dev.wait(PATIENCE)


def told(dev: subprocess.Popen) -> str:
    """Where the console is, as it says itself. What it says later is read and left alone."""
    for line in dev.stderr:
        if found := re.search(r"console +(http://\S+?)/? ", line):
            threading.Thread(target=dev.stderr.read, daemon=True).start()
            return found[1]
    sys.exit("dev said no console")


def login(console: str) -> tuple[str, str]:
    body = json.dumps({"username": "root", "password": "root"}).encode()
    request = urllib.request.Request(f"{console}/api/v1/login", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return answer.headers["set-cookie"].split(";")[0], json.load(answer)["csrfToken"]


def ask(console: str, path: str, cookie: str):
    request = urllib.request.Request(f"{console}/api/v1{path}", headers={"cookie": cookie})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def until_there_is_a_run(console: str, cookie: str) -> None:
    """One that has printed something and ended."""
    deadline = time.monotonic() + PATIENCE
    while not ask(console, "/r/dev/runs?job=load&state=done", cookie)["items"]:
        if time.monotonic() > deadline:
            sys.exit("nothing ran")
        time.sleep(0.2)


def tried(console: str, cookie: str, csrf: str, options: list[str], folder: str) -> int:
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", HERE / "schemathesis.toml", "run", *options]
    environment = {**os.environ, "CONSOLE_COOKIE": cookie, "CONSOLE_CSRF": csrf}
    return subprocess.run([*command, f"{console}/api/v1/openapi.json"], cwd=folder, env=environment, timeout=LONGEST).returncode


if __name__ == "__main__":
    sys.exit(main())
