#!/usr/bin/env bash
# Finds or installs redis-server and prints its path on the last line. The tests start their own
# servers on private sockets; no daemon is left running. EMMER_REDIS=/path uses another binary.
set -euo pipefail

say() { echo "redis: $*" >&2; }

if [ -n "${EMMER_REDIS:-}" ]; then
  [ -x "$EMMER_REDIS" ] || { say "EMMER_REDIS=$EMMER_REDIS is not a program"; exit 1; }
  say "using $EMMER_REDIS (from the environment)"
  echo "$EMMER_REDIS"
  exit 0
fi
if bin=$(command -v redis-server); then
  say "using $bin ($("$bin" --version | grep -oE 'v=[0-9.]+'))"
  echo "$bin"
  exit 0
fi

command -v apt-get >/dev/null || { say "no redis-server on PATH and no apt-get to install it with"; exit 1; }
say "installing Debian's redis-server (once)"
# A package's service is started unless this file says no; it is Debian's own interface for that.
rc=/usr/sbin/policy-rc.d
if [ ! -e "$rc" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$rc"
  chmod 755 "$rc"
  trap 'rm -f "$rc"' EXIT
fi
apt-get update -q >&2
DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends redis-server >&2
command -v redis-server
