#!/usr/bin/env bash
# Makes a Python environment with pip in the folder that is named, in place of what is there.
set -euo pipefail
venv=$1
rm -rf "$venv"
mkdir -p "$(dirname "$venv")"
if ! python3 -m venv "$venv" >/dev/null 2>&1 || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  echo "$venv: this Python makes no virtual environments with pip; installing Debian's python3-venv" >&2
  apt-get update -q >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends python3-venv >&2
  rm -rf "$venv"
  # Debian's package serves Debian's Python, which need not be the first one on PATH.
  /usr/bin/python3 -m venv "$venv"
fi
