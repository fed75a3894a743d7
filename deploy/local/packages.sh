#!/usr/bin/env bash
# Installs what is missing of packages.txt; says nothing when nothing is.
#
#   deploy/local/packages.sh [build|test|bench|full]  (test includes build, full and bench include test)
set -euo pipefail
cd "$(dirname "$0")"

groups=${1:-build}
case $groups in
  build) wanted="build" ;;
  test) wanted="build test" ;;
  bench) wanted="build test bench" ;;
  full) wanted="build test full" ;;
  *) echo "packages.sh: unknown group '$groups'; use build, test, bench or full" >&2; exit 2 ;;
esac

fail() {
  echo "packages.sh: $*" >&2
  exit 1
}

# The packages of the wanted groups: a line "# NAME" alone begins a group.
listed() {
  awk -v wanted=" $wanted " '
    /^# [a-z]+$/ { on = index(wanted, " " $2 " ") > 0; next }
    /^#/ || NF == 0 { next }
    on { print $1 }' packages.txt
}

missing() {
  local names
  mapfile -t names < <(listed)
  comm -23 <(printf '%s\n' "${names[@]}" | sort) \
    <(dpkg-query -W -f='${Package} ${Status}\n' "${names[@]}" 2>/dev/null |
      sed -n 's/ install ok installed$//p' | sort)
}

command -v dpkg-query >/dev/null || fail "this needs Debian 12 or a system made from it (no dpkg here)"
mapfile -t packages < <(missing)
[ ${#packages[@]} -eq 0 ] && exit 0
echo "packages: installing ${#packages[@]}: ${packages[*]}"

by_hand="apt-get install ${packages[*]}"
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "not root and no sudo; as root run: $by_hand"
  if ! sudo -n true 2>/dev/null; then
    [ -t 0 ] || fail "sudo wants a password and there is no terminal; as root run: $by_hand"
    sudo -v || fail "sudo refused; as root run: $by_hand"
  fi
  sudo=(sudo)
fi

free_mib=$(df --output=avail -m /var | tail -1 | tr -d ' ')
[ "$free_mib" -ge 2048 ] || fail "only $free_mib MiB free under /var, 2048 are needed; make room and run this again"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Tests need the nginx program, nobody needs a new service on port 80.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f "$log"; "${sudo[@]}" rm -f $policy' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" tee $policy >/dev/null
  "${sudo[@]}" chmod +x $policy
fi

# Runs apt-get and shows how far it is in steps of ten percent.
apt() {
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o Dpkg::Use-Pty=0 \
    -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 -o APT::Status-Fd=3 "$@" \
    3>&1 >>"$log" 2>&1 </dev/null |
    awk -F: '
      ($1 == "dlstatus" || $1 == "pmstatus") && int($3 / 10) != last {
        last = int($3 / 10)
        printf "packages: %s %d%%\n", $1 == "dlstatus" ? "fetching" : "installing", last * 10
        fflush()
      }'
}

explain() {
  if grep -qiE 'could not get lock|unable to acquire|unable to lock' "$log"; then
    fail "another package manager is running; wait until it has ended, then run this again"
  elif grep -qiE 'no space left' "$log"; then
    fail "the disk is full; make room and run this again"
  elif grep -qiE 'temporary failure resolving|could not resolve|could not connect|unable to connect|failed to fetch|network is unreachable' "$log"; then
    fail "no network to the package sources; connect the machine, or install by hand: $by_hand"
  elif grep -qiE 'unable to locate package|has no installation candidate' "$log"; then
    grep -iE -m1 'unable to locate package|has no installation candidate' "$log" >&2
    fail "the package sources do not have it: this needs those of Debian 12 (bookworm)"
  elif grep -qiE 'dpkg was interrupted|unmet dependencies|held broken' "$log"; then
    fail "the package database is broken; run 'dpkg --configure -a && apt-get -f install', then this again"
  fi
  tail -n 5 "$log" >&2
  fail "apt-get failed (above); try by hand: $by_hand"
}

# Old lists name versions that are gone: ask for new ones, but only then.
if ! apt install --no-install-recommends "${packages[@]}"; then
  grep -qiE 'unable to locate|no installation candidate|failed to fetch|404' "$log" || explain
  echo "packages: asking for new package lists"
  : >"$log"
  apt update || explain
  apt install --no-install-recommends "${packages[@]}" || explain
fi
mapfile -t packages < <(missing)
[ ${#packages[@]} -eq 0 ] || fail "still missing after the installation: ${packages[*]}"
echo "packages: done"
