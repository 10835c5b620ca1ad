#!/bin/sh
# Installs what `make test` needs beyond Rust, if it is missing; otherwise does nothing.
# Starts no server: tests start their own. A package that would start a service when it is installed has to be prevented from that before it
# may be added here.
set -eu

missing_names=   # names of what is missing, one per line
packages=        # the Debian packages that contain it

missing() { # <name> <package>...
    missing_names="$missing_names$1
"
    shift
    packages="$packages $*"
}

[ -e /usr/share/java/zookeeper.jar ] || missing ZooKeeper zookeeper
[ -x "${JAVA_HOME:-/nowhere}/bin/java" ] || command -v java >/dev/null || missing Java default-jre-headless
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || missing PostgreSQL postgresql
# The core packages contain the server and the program that creates its data folder, and start no service.
{ [ -x /usr/sbin/mariadbd ] || command -v mariadbd >/dev/null; } && command -v my_print_defaults >/dev/null ||
    missing MariaDB mariadb-server-core mariadb-client-core
if ! command -v python3 >/dev/null; then
    missing Python python3 python3-venv
elif ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    missing "Python's venv" python3-venv
fi

[ -n "$packages" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    names=$(printf %s "$missing_names" | sed -e '$!s/$/,/' | tr '\n' ' ' | sed -e 's/,\( [^,]*\)$/ and\1/' -e 's/ $//')
    echo "make test needs $names; hint: sudo apt-get install$packages" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update
case $packages in *postgresql*)
    # Without a main cluster there is no service to start.
    apt-get install -y --no-install-recommends postgresql-common
    sed -i 's/^#\?create_main_cluster .*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
esac
# shellcheck disable=SC2086 # one argument per package
apt-get install -y --no-install-recommends $packages
