#!/usr/bin/env bash
# Installs what tests need, builds, and runs every test. Safe to repeat; the second run is fast.
#
#   tests/run.sh           the gate: GCC build and all tests but the long ones; a build by clang, the
#                          second compiler, with AddressSanitizer and UndefinedBehaviorSanitizer and
#                          its unit, contract and process tests; ThreadSanitizer over the tests
#                          labelled for it
#   tests/run.sh --quick   formatting, the GCC build and its tests alone
#   tests/run.sh --full    also the long tests, the release build, fuzzing for a minute each,
#                          clang-tidy and coverage; writes docs/full-run.md
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

full=no
quick=no
case ${1-} in
  "") ;;
  --quick) quick=yes ;;
  --full) full=yes ;;
  *) echo "tests/run.sh: unknown option '$1'; there are --quick and --full" >&2; exit 2 ;;
esac

export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
jobs=$(nproc)
logs=build/logs
mkdir -p $logs
rm -f $logs/second-tries.txt
began=$SECONDS
stage_number=0
stages=7
[ $full = no ] || stages=15
[ $quick = no ] || stages=3
report=()
child=

clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# Ends what is still running, with everything that it started.
finish() {
  [ -n "$child" ] && kill -TERM -- "-$child" 2>/dev/null
  true
}
trap finish EXIT
trap 'exit 130' INT TERM

# stage NAME REMEDY COMMAND…: runs the command with its output in a log, and shows its last line
# every ten seconds. On failure prints what matters of the log and one line with the remedy.
stage() {
  local name=$1 remedy=$2 log start status=0 shown
  shift 2
  log=$logs/${name// /-}.log
  stage_number=$((stage_number + 1))
  start=$SECONDS
  shown=$SECONDS
  echo "[$stage_number/$stages] $name"
  set -m
  "$@" >"$log" 2>&1 &
  child=$!
  set +m
  while kill -0 $child 2>/dev/null; do
    sleep 0.2
    if [ $((SECONDS - shown)) -ge 10 ]; then
      shown=$SECONDS
      echo "        $(clock $((SECONDS - start)))  $(tail -n 1 "$log" | tr -d '\r' | cut -c 1-100)"
    fi
  done
  wait $child || status=$?
  child=
  report+=("$name|$(clock $((SECONDS - start)))")
  if [ $status -ne 0 ]; then
    echo "        … the end of $log:"
    tail -n 40 "$log"
    echo "        … what went wrong in it:"
    grep -nE -A 5 'error:|: Failure$|\*\*\*Failed|ERROR:|WARNING: ThreadSanitizer' "$log" |
      cut -c 1-200 | head -n 60 || true
    echo "tests/run.sh: FAILED in '$name' after $(clock $((SECONDS - start))) (exit code $status, log $log); $remedy" >&2
    exit 1
  fi
  echo "        done in $(clock $((SECONDS - start)))"
}

sources() { git ls-files '*.cpp' '*.hpp'; }

check_format() {
  sources | xargs -P "$jobs" -n 20 clang-format-14 --dry-run --Werror
}

build() {
  cmake --preset "$1"
  cmake --build --preset "$1" --parallel "$jobs" ${2:+--target "$2"}
}

run_tests() {
  local preset=$1
  shift
  ctest --preset "$preset" --parallel "$jobs" --output-log "$logs/ctest-$preset.log" "$@" ||
    second_try "$preset"
}

# Tests of real processes wait for real time, and on a machine that stood still for a moment one may
# come late. Up to three of those, and nothing else, run once more, alone; the report names them.
# What a sanitizer has found, and any other failed test, stays a failure.
second_try() {
  local preset=$1 failed=$logs/failed.txt
  local reports='ERROR: [A-Za-z]*Sanitizer|WARNING: ThreadSanitizer|SUMMARY: [A-Za-z]*Sanitizer|: runtime error: '
  names() { ctest --preset "$preset" -N "$@" | sed -n 's/^ *Test *#[0-9]*: //p' | sort; }
  if grep -qE "$reports" "$logs/ctest-$preset.log"; then return 8; fi
  names --rerun-failed >"$failed"
  if [ "$(wc -l <"$failed")" -gt 3 ] || [ ! -s "$failed" ]; then return 8; fi
  # ctest takes no labels beside --rerun-failed.
  if [ -n "$(names -L e2e | comm -13 - "$failed")" ]; then return 8; fi
  sed "s/^/$preset: /" "$failed" >>"$logs/second-tries.txt"
  echo "Once more, alone:"
  ctest --preset "$preset" --rerun-failed --parallel 1
}

# The words that a target's inputs are made of; nothing for those that need none.
dictionary_of() {
  case $1 in
    request_head_fuzz | response_head_fuzz | chunked_fuzz) echo tests/fuzz/http.dict ;;
    *) if [ -f "tests/fuzz/${1%_fuzz}.dict" ]; then echo "tests/fuzz/${1%_fuzz}.dict"; fi ;;
  esac
}

# A minute for each target, from its corpus; new inputs stay in the build folder.
fuzz() {
  local target corpus dictionary
  for target in build/fuzz/fuzz/*; do
    if [ ! -x "$target" ] || [ -d "$target" ]; then continue; fi
    corpus=build/fuzz/corpus/$(basename "$target")
    mkdir -p "$corpus"
    echo "$target"
    dictionary=$(dictionary_of "$(basename "$target")")
    "$target" -max_total_time=60 -print_final_stats=0 -verbosity=0 \
      -artifact_prefix=build/fuzz/crash- ${dictionary:+-dict="$dictionary"} \
      "$corpus" "tests/fuzz/corpus/$(basename "$target")"
  done
}

check_with_clang_tidy() {
  sources | grep '^\(src\|cmd\|loadgen\)/.*\.cpp$' |
    xargs -P "$jobs" -n 1 clang-tidy-16 --quiet -p build/debug
}

cover() {
  build coverage
  find build/coverage -name '*.gcda' -delete
  run_tests coverage -LE long
}

# QA-4: lines of the domain and of the parsers above 90 %.
check_coverage() {
  local gcovr=(gcovr --root . build/coverage --exclude-throw-branches --print-summary
    --gcov-ignore-parse-errors -j "$jobs")
  "${gcovr[@]}" --filter 'include/' --filter 'src/' --filter 'loadgen/' --txt $logs/coverage-all.txt
  {
    echo "| lines covered | percent |"
    echo "| --- | --- |"
    echo "| everything | $(awk '/^TOTAL/ {print $4}' $logs/coverage-all.txt) |"
  } >$logs/coverage.txt
  local part
  for part in include/proxypool/domain src/net/http src/config; do
    "${gcovr[@]}" --filter "$part/" --fail-under-line 90 --txt $logs/coverage-part.txt
    echo "| $part | $(awk '/^TOTAL/ {print $4}' $logs/coverage-part.txt) |" >>$logs/coverage.txt
  done
}

free_mib=$(df --output=avail -m . | tail -1 | tr -d ' ')
if [ "$free_mib" -lt 6000 ] && [ ! -d build/debug ]; then
  echo "tests/run.sh: only $free_mib MiB free here, a build needs 6000; make room and run this again" >&2
  exit 1
fi

if [ $full = yes ]; then deploy/local/packages.sh full; else deploy/local/packages.sh test; fi

stage "formatting" "run: git ls-files '*.cpp' '*.hpp' | xargs clang-format-14 -i" check_format
stage "debug build" "the first error above names the file" build debug
stage "debug tests" "one test again: ctest --preset debug -R NAME" run_tests debug -LE long
if [ $quick = no ]; then
  stage "asan build" "clang's first error above names the file" build asan
  stage "asan tests" "one test again: ctest --preset asan -R NAME" \
    run_tests asan -L 'unit|contract|e2e' -LE long
  stage "tsan build" "the first error above names the file" build tsan pp_tsan_tests
  stage "tsan tests" "one test again: ctest --preset tsan -R NAME" run_tests tsan -LE long
fi

if [ $full = yes ]; then
  stage "long tests" "one test again: ctest --preset debug -R NAME" \
    run_tests debug -L long --no-tests=ignore
  stage "release build" "the first error above names the file" build release
  stage "release tests" "one test again: ctest --preset release -R NAME" run_tests release -LE long
  stage "fuzz build" "the first error above names the file" build fuzz pp_fuzz_targets
  stage "fuzzing" "the input that broke it lies in build/fuzz, put it into the corpus" fuzz
  stage "clang-tidy" "see .clang-tidy for what each check wants" check_with_clang_tidy
  stage "coverage tests" "one test again: ctest --preset coverage -R NAME" cover
  stage "coverage" "write the tests that are missing" check_coverage
fi

# What ctest said about a run, from its log.
summary() { sed -n '/tests passed, .* tests failed/,$p' "$logs/$1-tests.log"; }

echo
echo "All of it in $(clock $((SECONDS - began))):"
for line in "${report[@]}"; do printf '  %-16s %6s\n' "${line%|*}" "${line#*|}"; done
if [ -s $logs/second-tries.txt ]; then
  echo "Passed at the second try, alone; look at each:"
  sed 's/^/  /' $logs/second-tries.txt
fi
if [ $full = yes ]; then
  {
    echo "# The last full run"
    echo
    echo "Written by \`tests/run.sh --full\` on $(date -u +%F), $(git rev-parse --short HEAD), $jobs cores."
    echo
    echo "| stage | minutes |"
    echo "| --- | --- |"
    for line in "${report[@]}"; do echo "| ${line%|*} | ${line#*|} |"; done
    echo
    for preset in debug asan tsan release; do
      echo "- $preset: $(summary $preset | head -n 1)"
    done
    echo
    cat $logs/coverage.txt
  } >docs/full-run.md
fi
echo
[ $quick = yes ] || for preset in asan tsan; do echo "$preset: $(summary $preset | head -n 1)"; done
summary debug
