#!/usr/bin/env bash
# Measures the gateway beside HAProxy and Squid, in one run, each on one core, and prints ratios.
#
#   tests/bench/compare.sh                       everything: about ten minutes
#   tests/bench/compare.sh --rows get,tunnel     these rows alone; --list names them
#   tests/bench/compare.sh --repetitions 5       medians of so many (3)
#   tests/bench/compare.sh --skip-build          with the programs of build/release as they are
#
# The system under test has core 0 for itself, the clients and the proxies behind it core 1. What a
# row costs is the system's CPU time, all of its processes, kernel included, divided by the work
# done. Systems take turns within each repetition, and ratios are taken within it, since the speed
# of a virtual machine wanders. Run as root the traffic stays in a network namespace of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=yes
arguments=()
for argument in "$@"; do
  case $argument in
    --skip-build) build=no ;;
    -h | --help)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
      exit 0
      ;;
    *) arguments+=("$argument") ;;
  esac
done

[ "$(nproc)" -ge 2 ] || { echo "compare.sh: two cores are needed, this machine has one" >&2; exit 1; }
if [ $build = yes ]; then
  deploy/local/packages.sh bench
  log=build/logs/compare-build.log
  mkdir -p build/logs
  echo "building the release programs (log $log)"
  if ! { cmake --preset release && cmake --build --preset release --target proxy-controller \
    proxy-checker proxy-gateway compare_client compare_upstream; } >"$log" 2>&1; then
    tail -n 30 "$log"
    echo "compare.sh: the build failed, see $log" >&2
    exit 1
  fi
fi

run=(python3 tests/bench/compare/compare.py --programs build/release "${arguments[@]}")
if [ "$(id -u)" -eq 0 ] && unshare -n true 2>/dev/null; then
  exec unshare -n "${run[@]}" --own-network
fi
echo "compare.sh: not root: no network namespace, and no counts of system calls" >&2
exec "${run[@]}"
