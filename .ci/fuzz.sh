#!/usr/bin/env bash
# Runs every fuzz target of the project, one after the other. usage: .ci/fuzz.sh [time of each]
set -euo pipefail
cd "$(dirname "$0")/.."
each=${1:-20s}
status=0
for pkg in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do
  dir=$(go list -f '{{.Dir}}' "$pkg")
  grep -qE '^func Fuzz' "$dir"/*_test.go || continue
  for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz'); do
    echo "== $pkg $target ($each)"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$each" "$pkg" || status=1
  done
done
exit $status
