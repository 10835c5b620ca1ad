"""Starts `elasticjob dev --demo` with a history, waits for the first run, and lets schemathesis test every operation of the OpenAPI document.

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
TIMEOUT = 600


def main() -> int:
    binary, options = os.path.abspath(sys.argv[1]), sys.argv[2:]
    # Stopping this script stops the console, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    with tempfile.TemporaryDirectory() as folder:
        history = f"sqlite:{folder}/history.db"
        command = [binary, "dev", "--demo", "--registry-listen", "0", "--listen", "0", "--history", history]
        dev = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            console = console_url(dev)
            cookie, csrf = login(console)
            wait_for_run(console, cookie)
            status = run_schemathesis(console, cookie, csrf, options, folder)
            if dev.poll() is not None:
                sys.exit(f"the console ended: {dev.returncode}")
            get(console, "/session", cookie)
            return status
        finally:
            dev.send_signal(signal.SIGTERM)
            dev.wait(PATIENCE)


def console_url(dev: subprocess.Popen) -> str:
    """The console's URL from the output of dev. Later output is read and discarded."""
    for line in dev.stderr:
        if found := re.search(r"console +(http://\S+?)/? ", line):
            threading.Thread(target=dev.stderr.read, daemon=True).start()
            return found[1]
    sys.exit("dev printed no console URL")


def login(console: str) -> tuple[str, str]:
    body = json.dumps({"username": "root", "password": "root"}).encode()
    request = urllib.request.Request(f"{console}/api/v1/login", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return response.headers["set-cookie"].split(";")[0], json.load(response)["csrfToken"]


def get(console: str, path: str, cookie: str):
    request = urllib.request.Request(f"{console}/api/v1{path}", headers={"cookie": cookie})
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def wait_for_run(console: str, cookie: str) -> None:
    """Waits until a run with output has ended."""
    deadline = time.monotonic() + PATIENCE
    while not get(console, "/r/dev/runs?job=load&state=done", cookie)["items"]:
        if time.monotonic() > deadline:
            sys.exit("no run ended")
        time.sleep(0.2)


def run_schemathesis(console: str, cookie: str, csrf: str, options: list[str], folder: str) -> int:
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", HERE / "schemathesis.toml", "run", *options]
    environment = {**os.environ, "CONSOLE_COOKIE": cookie, "CONSOLE_CSRF": csrf}
    return subprocess.run([*command, f"{console}/api/v1/openapi.json"], cwd=folder, env=environment, timeout=TIMEOUT).returncode


if __name__ == "__main__":
    sys.exit(main())
