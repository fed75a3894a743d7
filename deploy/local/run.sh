#!/usr/bin/env bash
# Starts Proxy Pool on this machine: controller, checker and gateway on the embedded stores, proves
# one request through them, and keeps running until Ctrl-C. No account and no network is needed.
#
#   deploy/local/run.sh                  with fixture proxies and a fixture vendor on loopback
#   deploy/local/run.sh --proxies FILE   with your own list: scheme://user:pass@host:port or
#                                        host:port[:user:pass], one a line
#   deploy/local/run.sh --config FILE    with a whole configuration of yours
#   … --once                             stop after the first proven request: 0, or 1 with the reason;
#                                        with --config it needs --target
#   … --target URL                       where the proving request goes. Without it: to the fixture's
#                                        origin on loopback, or to http://example.com/ when your
#                                        list holds a proxy that is not on this machine
#   … --user NAME:PASSWORD               for the gateway of a --config FILE that asks for credentials
#   … --port N                           the gateway at N, the other listeners at N+1 … N+6
#   … --wait SECONDS                     how long to wait for a usable proxy; 30 without it
#   … --skip-build                       use the programs of the last build
#
# Environment: PROXY_POOL_LOCAL_DIR, where state is kept (default .proxypool); PROXY_POOL_BIN, the
# folder of the programs (default build/release/bin); PROXY_POOL_FIXTURE, further arguments for
# proxy-loadgen fixture, for example "--fault *=refuse".
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
started_in=$PWD
cd "$root"

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
fail() {
  echo "run.sh: $*" >&2
  exit 1
}
say() { echo "==> $*"; }

once=no build=yes list= config= port= patience=30 target= user=
url_form='^https?://[]A-Za-z0-9.:_[-]+([/?][[:graph:]]*)?$'  # no credentials in it
while [ $# -gt 0 ]; do
  case $1 in
    --once) once=yes ;;
    --skip-build) build=no ;;
    --proxies | --config)
      [ $# -ge 2 ] || { echo "run.sh: $1 needs a file" >&2; exit 2; }
      file=$2
      case $file in /*) ;; *) file=$started_in/$file ;; esac
      [ -r "$file" ] && [ ! -d "$file" ] || { echo "run.sh: cannot read $2; name a file that exists" >&2; exit 2; }
      [ "$1" = --proxies ] && list=$file || config=$file
      shift
      ;;
    --port | --wait)
      case ${2-} in '' | *[!0-9]* | ??????*) echo "run.sh: $1 needs a number" >&2; exit 2 ;; esac
      [ "$1" = --port ] && port=$2 || patience=$2
      shift
      ;;
    --target)
      [[ ${2-} =~ $url_form ]] ||
        { echo "run.sh: $1 needs a URL such as http://example.com/ or https://example.com/" >&2; exit 2; }
      target=$2
      shift
      ;;
    --user)
      case ${2-} in ?*:*) ;; *) echo "run.sh: $1 needs NAME:PASSWORD" >&2; exit 2 ;; esac
      user=$2
      shift
      ;;
    --help | -h) usage; exit 0 ;;
    *) echo "run.sh: unknown option '$1'; see --help" >&2; exit 2 ;;
  esac
  shift
done
if [ -n "$list" ] && [ -n "$config" ]; then
  echo "run.sh: --proxies and --config exclude each other; put the list into the configuration" >&2
  exit 2
fi

if [ -n "$port" ] && { [ -n "$config" ] || [ "$port" -lt 1024 ] || [ "$port" -gt 65529 ]; }; then
  echo "run.sh: --port takes 1024 to 65529, and goes without --config, which names the ports itself" >&2
  exit 2
fi
if [ -n "$user" ] && [ -z "$config" ]; then
  echo "run.sh: --user goes with --config; without it the gateway asks for no credentials" >&2
  exit 2
fi
if [ -n "$config" ] && [ $once = yes ] && [ -z "$target" ]; then
  echo "run.sh: --config with --once needs --target URL: what your proxies can reach and your" \
    "gateway lets through, such as http://example.com/" >&2
  exit 2
fi

bin=${PROXY_POOL_BIN:-$root/build/release/bin}
build_programs() {
  deploy/local/packages.sh build
  local free
  free=$(df -Pk . | awk 'NR == 2 {print $4}')
  [ "$free" -gt 1500000 ] || fail "less than 1.5 GB are free here; make room and start again"
  say "Building (the first time takes some minutes)"
  cmake --preset release -DPROXYPOOL_TESTS=OFF >build-run.log 2>&1 ||
    { tail -n 20 build-run.log >&2; fail "the configuration of the build failed; see build-run.log"; }
  # Ninja's own progress line; only what fails is shown beside it.
  if [ -t 1 ]; then
    cmake --build --preset release --parallel "$(nproc)" || fail "the build failed; see above"
  else
    cmake --build --preset release --parallel "$(nproc)" | awk '
      /^\[[0-9]+\/[0-9]+\]/ { if (NR % 20 == 1) print "    " $1; next } { print }' ||
      fail "the build failed; see above"
  fi
  rm -f build-run.log
}
[ $build = no ] || build_programs
for program in proxy-controller proxy-checker proxy-gateway proxy-loadgen; do
  [ -x "$bin/$program" ] || fail "$bin/$program is missing; start without --skip-build"
done

state=${PROXY_POOL_LOCAL_DIR:-$root/.proxypool}
mkdir -p "$state"
exec 9>"$state/run.lock"
flock -n 9 || fail "another run.sh uses $state; stop it, or set PROXY_POOL_LOCAL_DIR"
work=$(mktemp -d "${TMPDIR:-/tmp}/proxypool-run.XXXXXX")

declare -A pids=()
stopping=no
# In the reverse order of the start: the gateway drains and reports, then the others may go.
stop_all() {
  stopping=yes
  trap - EXIT
  trap '' INT TERM HUP  # what has begun to stop is not cut short
  local name i
  for name in gateway checker controller fixture; do
    [ -n "${pids[$name]-}" ] || continue
    kill -TERM "${pids[$name]}" 2>/dev/null || true
    for i in $(seq 100); do
      kill -0 "${pids[$name]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "${pids[$name]}" 2>/dev/null || true
    wait "${pids[$name]}" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap stop_all EXIT
interrupted() {
  echo
  say "Stopping"
  stop_all
  [ $once = no ] || fail "stopped before a request was proven"
  exit 0
}
trap interrupted INT TERM HUP

# start NAME COMMAND…: in the background, its output in a file that is shown if it dies. In a session
# of its own: a terminal's Ctrl-C must reach this script alone, which stops one after the other.
start() {
  local name=$1
  shift
  setsid "$@" >"$work/$name.log" 2>&1 9>&- &
  pids[$name]=$!
}
alive() { kill -0 "${pids[$1]}" 2>/dev/null; }
remedy() {
  echo "stop what listens there (ss -ltnp shows it), or choose other ports with --port N (in a --config file: its listen keys)"
}
died() {
  echo "run.sh: $1 ended; its last lines:" >&2
  tail -n 15 "$work/$1.log" >&2
  local taken
  taken=$(grep -o 'address already in use[^"]*' -i "$work/$1.log" | head -n 1 || true)
  [ -z "$taken" ] || echo "run.sh: a port is taken: $(remedy)" >&2
  exit 1
}
all_alive() {
  local name
  for name in "${!pids[@]}"; do alive "$name" || died "$name"; done
}
# wait_for SECONDS COMMAND…: until the command succeeds, or a program dies, or the time is over.
wait_for() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    all_alive
    [ $SECONDS -lt $until ] || return 1
    sleep 0.1
  done
  all_alive
}
json() { python3 -c 'import json,sys; d=json.load(sys.stdin)
for k in sys.argv[1].split("."): d=d[int(k)] if k.isdigit() else d[k]
print(d)' "$1"; }

# setting KEY…: values of the effective configuration, one a line; empty where there is none.
setting() {
  python3 -c 'import sys
path, values = [], {}
for line in open(sys.argv[1]):
    if not line.strip() or line.lstrip().startswith("#"): continue
    depth = (len(line) - len(line.lstrip())) // 2
    name, _, value = line.strip().partition(":")
    path[depth:] = [name]
    values[".".join(path)] = value.strip().strip("\"")
for key in sys.argv[2:]: print(values.get(key, ""))' "$work/effective.yaml" "$@"
}

# list_facts FILE: how many proxies it names, and whether all of them are on this machine.
list_facts() {
  python3 -c 'import ipaddress, re, sys
def here(host):
    try: return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError: return host.lower() == "localhost"
count, local = 0, "yes"
for line in open(sys.argv[1], encoding="utf-8-sig", errors="replace"):
    text = re.sub(r"^[A-Za-z][\w+.-]*://", "", line.strip())
    if not text or text.startswith("#"): continue
    for endpoint in (text.rpartition("@")[2], text):
        found = re.match(r"(\[[^\]]+\]|[^:@\[\]]+):\d+(?:[:/]|$)", endpoint)
        if found: break
    if not found: continue  # the controller names its line
    count += 1
    if not here(found[1]): local = "no"
print(count, local)' "$1"
}

listens() { (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null; }

# A text as YAML has it, whatever it holds.
quoted() { printf "'%s'" "${1//\'/\'\'}"; }

# write_config STATE-DIR UPSTREAM ID
write_config() {
  local listen= allowed= check=
  [ -z "$port" ] || listen="
  listen: 127.0.0.1:$port
  controlPlane: 127.0.0.1:$((port + 3))
  metrics: {listen: 127.0.0.1:$((port + 4))}
distribution: {listen: 127.0.0.1:$((port + 1))}
admin: {listen: 127.0.0.1:$((port + 2))}
controlPlane: {listen: 127.0.0.1:$((port + 3))}
controller: {metrics: {listen: 127.0.0.1:$((port + 5))}}
checker:
  controlPlane: 127.0.0.1:$((port + 3))
  metrics: {listen: 127.0.0.1:$((port + 6))}"
  # The target policy refuses addresses of this machine and of its networks otherwise.
  if [ $ours = yes ]; then
    allowed=127.0.0.0/8
  elif [[ $target_host =~ ^[0-9.]+$|: ]]; then
    allowed=$(quoted "$target_host")
  fi
  # Checked is what will be used: not every proxy can answer for a made-up destination in time.
  [ $ours = yes ] || check="
check: {basic: {target: $(quoted "$check_at")}}"
  cat >"$work/config.yaml" <<YAML
# Written by run.sh; see configs/embedded.yaml for every key.
storage: {stateDir: $(quoted "$1")}
gateway:
  accessLog: {oneIn: 1}
  target: {allowCIDRs: [$allowed]}$listen$check
upstreams:
$2
routings:
  - id: default
    upstreams: [{id: $3}]
YAML
}

# Where the proving request and the printed lines go; `ours`: to the fixture's origin, whose records
# can be read.
ours=no listed=0 tunnel_target=
if [ -n "$list" ]; then
  facts=$(list_facts "$list")
  listed=${facts% *}
fi
if [ -z "$target" ]; then
  if [ -n "$config" ] || [ "${facts-}" = "$listed no" ]; then
    public=yes
    target=http://example.com/ tunnel_target=https://example.com/
  else
    ours=yes
  fi
fi
if [ -n "$target" ]; then
  authority=${target#*://}
  authority=${authority%%[/?]*}
  check_at=$authority
  [[ $authority =~ :[0-9]+$ && ! $authority =~ ^\[[^]]*$ ]] || check_at=$authority:443
  target_host=${check_at%:*}
  target_host=${target_host//[\[\]]/}
fi
if [ -n "$list" ] && [ "${public-no}" = yes ]; then
  say "Your proxies are not all on this machine: they are checked against $check_at, and requests go to" \
    "$target (--target URL names another)"
fi

if [ -z "$config" ] && { [ -z "$list" ] || [ $ours = yes ]; }; then
  read -ra fixture_arguments <<<"${PROXY_POOL_FIXTURE-}"
  say "Starting the fixture: a vendor API, forward proxies and an origin on loopback"
  start fixture "$bin/proxy-loadgen" fixture --proxies 6 --ttl 10m --ready-file "$work/fixture.json" \
    ${fixture_arguments[@]+"${fixture_arguments[@]}"}
  wait_for 10 test -s "$work/fixture.json" || fail "the fixture did not start within 10 s"
  origin=$(json origin.url <"$work/fixture.json")
  vendor=$(json vendor.url <"$work/fixture.json")
  [ $ours = no ] || target=$origin/
fi
used=$work/config.yaml
if [ -n "$config" ]; then
  used=$config  # in its place: its paths are relative to it
  cd "$started_in"
elif [ -n "$list" ]; then
  # Yours alone, on your machine: so it may be extracted from, which lists are not otherwise. The
  # only proxy of a list stays with the gateway.
  write_config "$state/list" "  - id: list
    provider: {type: file, path: $(quoted "$list")}
    extraction: {extractable: $([ "$listed" -gt 1 ] && echo true || echo false)}" list
else
  # A fresh vendor each time: its proxies have other ports, so nothing of an earlier run counts.
  write_config "$work/state" "  - id: fixture
    provider:
      type: http
      request: {url: \"$vendor/json/array?count={{ batch }}\"}
      response: {format: json}
      records: {from: 'body[*]'}
      map: {host: item.host, port: item.port, username: item.username, password: item.password, country: item.country, expires: {after: item.ttl, unit: s}}
    fetch: {estimatedIPsPerCall: 6}
    pool: {minimum: 20, target: 60}
    extraction: {reserve: 2}
    allowPrivateAddresses: true" fixture
fi
"$bin/proxy-controller" --config "$used" --check-config \
  >"$work/effective.yaml" 2>"$work/check.log" ||
  { cat "$work/check.log" >&2; fail "the configuration is wrong; mend what is listed above"; }

mapfile -t addresses < <(setting {gateway,distribution,admin,gateway.metrics}.listen)
mapfile -t modes < <(setting {gateway,distribution}.auth.mode)
gateway=${addresses[0]} distribution=${addresses[1]} admin=${addresses[2]} metrics=${addresses[3]}
if [ "${modes[0]}" = usernamePassword ] && [ -z "$user" ] && [ "${public-no}" = no ]; then
  echo "run.sh: the gateway of $config asks for credentials: add --user NAME:PASSWORD, of one of its" \
    "clients" >&2
  exit 2
fi

for address in "${addresses[@]}"; do
  ! listens "$address" || fail "$address is taken: $(remedy)"
done

say "Starting controller, checker and gateway"
start controller "$bin/proxy-controller" --config "$used"
wait_for 30 listens "$admin" || fail "the controller does not answer after 30 s"
start checker "$bin/proxy-checker" --config "$used"
start gateway "$bin/proxy-gateway" --config "$used" --worker-id local
ready() { curl -fsS --max-time 2 "http://$metrics/readyz"; }
usable() {
  curl -fsS --max-time 2 "http://$metrics/metrics" |
    awk '/^proxypool_gateway_proxies / {n = $2} END {exit !(n > 0)}'
}
wait_for 30 ready || fail "the gateway is not ready after 30 s: $(curl -s "http://$metrics/readyz")"
if ! wait_for "$patience" usable; then
  echo "run.sh: no proxy is usable after $patience s. What the controller says:" >&2
  curl -s "http://$admin/v1/status" | python3 -c 'import json,sys
d = json.load(sys.stdin)
for w in d["warnings"]: print("  warning:", w)
for u in d["upstreams"]:
    print("  upstream", u["id"], u["proxies"]["byState"], "last fetch:", u["fetch"].get("last"))
    if u["proxies"]["byState"].get("extracted"): print("  what is extracted is gone for good; stop, and remove the folder " + sys.argv[1] + " to forget that")
    elif sum(u["proxies"]["byState"].values()): print("  its proxies are known, but none passed its check: none of them answers, or none may be reached from here")' "$state/list" >&2
  exit 1
fi

# Words of a command line that a shell reads as they are.
pasted() {
  local word
  for word in "$@"; do
    [[ $word =~ ^[A-Za-z0-9_.:/@%+=,-]+$ ]] || word="'${word//\'/\'\\\'\'}'"
    printf ' %s' "$word"
  done
}
# curl asks for the password, so that none is shown here.
name=${user%%:*}
as_client=()
[ "${modes[0]}" = none ] || as_client=(-U "${name:-NAME}")
through=$(pasted curl ${as_client[@]+"${as_client[@]}"} -x "http://$gateway")

prove() {
  local token= url=$target
  if [ $ours = yes ]; then
    token=run-$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
    url=${origin}/t/$token
  fi
  say "Request: $through$(pasted "$url")"
  PROXY_USER=$user python3 "$root/deploy/local/request.py" "$gateway" "$url" "$work/gateway.log" "$admin" ||
    fail "no request was proven"
  [ $ours = yes ] || return 0
  curl -fsS "$vendor/records?token=$token" | python3 -c 'import json,sys
d = json.load(sys.stdin)
listed = sys.argv[1] != "0"
seen = {s["place"] for s in d["sightings"]}
if (len(d["proxies"]) != 1 and not listed) or "origin" not in seen: sys.exit("run.sh: the records do not show the request")
if listed: print("==> A proxy of your list served it: the record of the fixture%ss origin holds the token" % chr(39))
else: print("==> Served by fixture proxy %d: its own record and the origin%ss both hold the token" % (d["proxies"][0], chr(39)))' "$listed"
}
# Without a target of yours, a configuration of yours may let nothing through that is known here.
[ -n "$config" ] && [ "${public-no}" = yes ] || prove
[ $once = no ] || exit 0

tunnel="$through$(pasted "${tunnel_target:-$target}")"
case ${tunnel_target:-$target} in http:*) tunnel=" curl -p${tunnel# curl}" ;; esac
hand_out="$([ "${modes[1]}" = none ] || echo '-u NAME ')http://$distribution/v1/extractions -H 'content-type: application/json'"
cat <<TEXT

Proxy Pool is running. Paste any of these:

  rotate    $through$(pasted "$target")
  tunnel    $tunnel
TEXT
[ "$listed" = 1 ] || cat <<TEXT
  extract    curl -s $hand_out -d '{"count":1,"fulfillment":"partial"}'
  lines      curl -s -H 'accept: text/plain' $hand_out -d '{"count":1}'
TEXT
cat <<TEXT
  status     curl -s http://$admin/v1/status
  proxies    curl -s 'http://$admin/v1/proxies?state=available'
  workers    curl -s http://$admin/v1/workers
  metrics    curl -s http://$metrics/metrics
  ready      curl -s http://$metrics/readyz

  or         export http_proxy=http://$gateway https_proxy=http://$gateway

$([ "$listed" -lt 2 ] || echo "What extract and lines hand out leaves your gateway for good, over restarts, too; remove the folder
$state/list to forget that.
")
Logs are in $work. Ctrl-C stops everything.
TEXT
while :; do
  all_alive
  sleep 0.5
done
