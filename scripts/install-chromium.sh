#!/bin/sh
# Installs the browser for `make test-web` if it is missing; otherwise does nothing.
set -eu

command -v "${CHROMIUM:-chromium}" >/dev/null && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "make test-web needs Chromium; hint: sudo apt-get install chromium, or set CHROMIUM=/path/to/chromium" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends chromium fonts-noto-cjk
