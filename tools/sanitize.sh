#!/usr/bin/env bash
# The native core under address and undefined-behaviour sanitizers: built beside the package, into build/sanitized, and given the tests of arrays at
# hand, the random programs, and those whose own code runs in between; it looks whether each tape depends on older ones alone (LAZYNP_CHECK).  Needs gcc with libasan and libubsan (exit code 3 where they are not there, or do
# not run); PYTHON names the interpreter, and SANITIZE_EXAMPLES how many random programs there are (2,000), of which a tenth have hostile hooks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-.venv/bin/python}
examples=${SANITIZE_EXAMPLES:-2000}
built=build/sanitized

libraries=
for name in libasan.so libubsan.so; do
    found=$(gcc -print-file-name="$name")
    [ -e "$found" ] || { echo "gcc has no $name: apt-get install gcc (Debian, Ubuntu), dnf install libasan libubsan (Fedora)"; exit 3; }
    libraries="$libraries${libraries:+:}$found"
done
CC=gcc CFLAGS="-DLAZYNP_CHECK -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1 -O1" \
    "$python" setup.py -q build --build-lib "$built" --build-temp build/sanitizing

# what the interpreter never gives back is no leak of ours, and with malloc each of its objects has bounds of its own
export LD_PRELOAD="$libraries" PYTHONMALLOC=malloc PYTHONSAFEPATH=1 PYTHONPATH="$PWD/$built:$PWD" PYTHONDONTWRITEBYTECODE=1
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:handle_segv=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
"$python" -c "" || { echo "$python does not run under these libraries"; exit 3; }
"$python" -c "import lazynp, os, sys; sys.exit(not lazynp.__file__.startswith(os.path.abspath('$built')))"
"$python" -m tests.array.hostile --count $((examples / 10))
"$python" -m tests.differential.programs --count "$examples" --seed 1 --tier auto
"$python" -m pytest -n auto --dist worksteal --import-mode=append -m "not slow" tests/array tests/differential
