#!/usr/bin/env bash
# The first minutes of the CUDA backend on a GPU:  tools/first_light.sh STAGE [SECONDS]     (smoke, tests, bench, profile)
#
# In: the repository as it lies there; nothing is installed, nothing is fetched.  Out: under $OUT (first-light) at most 8 files: steps.tsv,
# env.txt, probe.jsonl, junit.xml, bench.jsonl, bench.json, ncu.csv, logs.tgz.  Promise: each step has a time limit of its own, no failure or
# overrun of one stops another, each result is on disk as it is made, and all is over after SECONDS (560).  Exit code 1 where a step failed.
#
#   PYTHON=python3.12    the interpreter (python3)
#   DEVICE=emulated      everything on the emulated GPU, with small inputs (gpu)
#   WORKERS=4            processes of pytest (14)
#   TESTS='views or row' which tests, as pytest's -k has it
#   ONLY='softmax|heat'  which workloads, a pattern of grep
#   PEERS=cupy,jax       which libraries are timed beside lazynp
#   EACH=40              seconds for each workload
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
stage=${1:?smoke, tests, bench or profile}
limit=${2:-560}
OUT=${OUT:-first-light}
PYTHON=${PYTHON:-python3}
DEVICE=${DEVICE:-gpu}
mkdir -p "$OUT"
scratch=$(mktemp -d)
logs=$scratch/logs
mkdir "$logs"
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export XLA_PYTHON_CLIENT_PREALLOCATE=false SCIPY_ARRAY_API=1 LAZYNP_TEST_CUDA=$DEVICE
export LAZYNP_CACHE_DIR=${LAZYNP_CACHE_DIR:-$scratch/lazynp} CUPY_CACHE_DIR=$scratch/cupy
program=("$PYTHON")
size=large
if [ "$DEVICE" = emulated ]; then
    program=("$PYTHON" -m gpu_emulator)
    size=small
fi
failed=0

pack() { tar -C "$scratch" -czf "$OUT/logs.tgz" logs; }
trap 'pack; rm -rf "$scratch"' EXIT
recorded() { printf '%s\t%s\t%s\n' "$@" | tee -a "$OUT/steps.tsv"; }

step() { # name, seconds at most, command...
    local name=$1 most=$2 room=$((limit - SECONDS - 15)) begin=$SECONDS rc=0
    shift 2
    ((room < most)) && most=$room
    if ((most < 10)); then
        recorded "$name" "no time" 0
        failed=1
        return
    fi
    timeout -k 5 "$most" "$@" >"$logs/$name.log" 2>&1 || rc=$?
    recorded "$name" "$rc" $((SECONDS - begin))
    if ((rc)); then
        failed=1
        tail -n 15 "$logs/$name.log"
    fi
    pack
}

with_tool() { # the program that must be there, and a step
    local tool=$1
    shift
    if command -v "$tool" >/dev/null; then step "$@"; else recorded "$1" "no $tool" 0; fi
}

tests() { # name, seconds, files and options...
    local name=$1 most=$2 hang=()
    shift 2
    "$PYTHON" -c 'import pytest_timeout' 2>/dev/null && hang=(--timeout=90)
    step "$name" "$most" "$PYTHON" -m pytest -v -p no:cacheprovider -n "${WORKERS:-14}" --dist worksteal "${hang[@]}" \
        --junitxml="$scratch/$name.xml" -k "${TESTS:-}" "$@"
}

environment() {
    date
    git log -1 --oneline
    nvidia-smi
    "$PYTHON" --version
    "$PYTHON" -m pip list | grep -iE 'numpy|scipy|scikit|cupy|torch|triton|jax|llvmlite|pytest|xdist|cuda|nvrtc'
    nproc
    free -g
    command -v ncu compute-sanitizer g++
}

case $stage in
smoke) # some 4 minutes: whether anything works, and the first facts
    environment >"$OUT/env.txt" 2>&1
    step doctor 60 "${program[@]}" -m lazynp doctor
    step one 60 "${program[@]}" tools/gpu_probe.py --items first "$OUT/probe.jsonl"
    LAZYNP_DEVICE=cuda LAZYNP_TIER=compiled LAZYNP_DEBUG=1 tests standard 150 tests/cuda/test_standard.py
    step probe 200 "${program[@]}" tools/gpu_probe.py --size "$size" "$OUT/probe.jsonl"
    step row 90 "${program[@]}" -m bench.gpu --size "$size" --only "exp/sqrt/sin chain" --seconds 0.5 --rows "$OUT/bench.jsonl" \
        --json "$OUT/bench.json" ${PEERS:+--peers "$PEERS"}
    ;;
tests) # some 9 minutes
    tests hardware 100 tests/cuda/test_hardware.py
    tests host 150 tests/cuda/test_{host,devices,writes,accumulating,composed}.py
    LAZYNP_DEVICE=cuda LAZYNP_TIER=compiled tests differential 330 --maxfail=200 tests/differential
    "$PYTHON" tools/joined.py "$scratch"/*.xml >"$OUT/junit.xml"
    for tool in memcheck racecheck initcheck; do
        LAZYNP_DEVICE=cuda LAZYNP_TIER=compiled with_tool compute-sanitizer "$tool" 150 \
            compute-sanitizer --tool "$tool" --error-exitcode 1 "${program[@]}" -m tests.cuda.standard
    done
    ;;
bench) # a process and a time limit for each workload
    "$PYTHON" -m bench.gpu --list | grep -E "${ONLY:-.}" >"$scratch/workloads"
    while read -r name; do
        step "bench_$(tr -cs 'a-zA-Z0-9' _ <<<"$name")" "${EACH:-40}" "${program[@]}" -m bench.gpu --size "$size" --only "$name" --seconds 0.4 \
            --limit 15 --rows "$OUT/bench.jsonl" --json "$scratch/one.json" ${PEERS:+--peers "$PEERS"}
    done <"$scratch/workloads"
    step goals 20 "$PYTHON" -m bench.gpu --collect "$OUT/bench.jsonl" --json "$OUT/bench.json"
    ;;
profile) # three launches of each of lazynp's kernels that count most
    "$PYTHON" -m bench.gpu --list | grep -E "${ONLY:-exp/sqrt|softmax|layer norm|mean|a.T|axis 0|gelu|Horner|Black|product|float32}" >"$scratch/workloads"
    while read -r name; do
        slug=ncu_$(tr -cs 'a-zA-Z0-9' _ <<<"$name")
        with_tool ncu "$slug" "${EACH:-60}" ncu --clock-control none -k regex:lazynp --launch-skip 4 --launch-count 3 --csv --page raw \
            --section SpeedOfLight --section MemoryWorkloadAnalysis --section LaunchStats --section Occupancy --section WarpStateStats \
            --section SchedulerStats --section InstructionStats \
            "${program[@]}" -m bench.gpu --size "$size" --only "$name" --peers cupy --seconds 0 --json "$scratch/one.json"
        [ -f "$logs/$slug.log" ] && grep -h '^"' "$logs/$slug.log" >>"$OUT/ncu.csv"
    done <"$scratch/workloads"
    step overheads 60 "${program[@]}" tools/gpu_probe.py --size "$size" --items host "$OUT/probe.jsonl"
    ;;
*)
    echo "there is no stage $stage: smoke, tests, bench, profile" >&2
    exit 2
    ;;
esac
cat "$OUT/steps.tsv"
exit "$failed"
