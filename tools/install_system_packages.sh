#!/bin/sh
# Installs the Debian or Ubuntu packages that a build needs, and those named: only as root, only what is missing.
set -eu
packages="g++ git make ccache python3-dev python3-venv libeigen3-dev nlohmann-json3-dev libhwy-dev libsqlite3-dev libssl-dev \
libgtest-dev libgmock-dev libbenchmark-dev clang-format-14 clang-tidy-14 libomp-14-dev $*"
# A browser for the tests of the report's page; Ubuntu has none as a package.
if grep -q '^ID=debian' /etc/os-release 2>/dev/null; then packages="$packages chromium-headless-shell"; fi

command -v dpkg-query >/dev/null || { echo "not Debian or Ubuntu: expecting the packages of README.md to be there"; exit 0; }
missing=""
for package in $packages; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
  echo "These packages are missing:$missing"
  echo "Install them as root: apt-get install$missing"
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $missing
