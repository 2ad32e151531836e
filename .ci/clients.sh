#!/usr/bin/env bash
# Installs the official clients that `make test-clients` runs, at the versions that examples/clients
# pins, into .cache/clients/: a Python environment and a Node one. What is there is kept.
set -euo pipefail
cd "$(dirname "$0")/.."

from=examples/clients
to=.cache/clients
say() { echo "clients: $*" >&2; }
mkdir -p "$to"

wanted=$(cat "$from/python/requirements.txt" "$from/node/package.json" | sha256sum)
if [ "$(cat "$to/installed" 2>/dev/null)" != "$wanted" ]; then
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    say "installing Debian's nodejs and npm"
    apt-get update -q >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends nodejs npm >&2
  fi
  say "installing into $to (about 300 MB, once)"
  rm -rf "$to/node"
  .ci/venv.sh "$to/venv"
  "$to/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$from/python/requirements.txt" >&2
  mkdir -p "$to/node"
  cp "$from/node/package.json" "$to/node/"
  (cd "$to/node" && npm install --no-package-lock --no-audit --no-fund --loglevel=error >&2)
  echo "$wanted" >"$to/installed"
fi
# The programs stand beside their packages, where Node looks for them.
cp "$from"/node/*.mjs "$to/node/"
