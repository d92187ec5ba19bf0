#!/usr/bin/env bash
# Runs every fuzz target of the module for the time given, one after the other as the go command asks:
#	tools/fuzz.sh 5s [REGEXP]
# A target is found by its name, so that a new one cannot be forgotten; REGEXP chooses some.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fuzztime=$1 only=${2:-.}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

targets=$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' cmd internal pkg | sed 's/func //' | grep -E "$only" | sort) ||
	{ echo "error: no fuzz target matches $only" >&2; exit 1; }
for target in $targets; do
	package=./$(dirname "${target%%:*}") name=${target##*:}
	for attempt in 1 2 3; do
		echo "go test -fuzz $name -fuzztime $fuzztime $package"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$fuzztime" "$package" 2>&1 | tee "$log" && continue 2
		# Until Go 1.27 the end of the time itself is sometimes reported as a failure (golang/go#75804): this line, and no
		# failing input. Then the target is run again; every other failure counts.
		grep -qE '^ +context deadline exceeded$' "$log" && ! grep -q 'Failing input written' "$log" || exit 1
		echo "the end of the fuzzing time was reported as a failure of $name (attempt $attempt of 3)"
	done
	exit 1
done
