#!/bin/sh
# Installs the browser that `make test-web` drives, where it is missing, and is silent where it is not.
set -eu

command -v "${CHROMIUM:-chromium}" >/dev/null && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "make test-web needs Chromium: sudo apt-get install chromium, or CHROMIUM=/path/to/one" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends chromium fonts-noto-cjk
