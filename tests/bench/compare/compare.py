#!/usr/bin/env python3
"""Runs the rows of the comparison; tests/bench/compare.sh builds what it needs and calls it."""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import systems

GB = 10**9


@dataclasses.dataclass
class Row:
    name: str
    what: str
    client: list  # arguments of the client
    work: int  # requests, tunnels, round trips; bytes of a bulk
    goal: float  # against HAProxy
    stretch: float
    bulk: bool = False


ROWS = [
    Row("get", "keep-alive GET 1 KiB, 64 connections",
        ["--mode", "get", "--connections", "64"], 100_000, 0.80, 0.75),
    Row("get-1000", "the same, 1,000 connections",
        ["--mode", "get", "--connections", "1000"], 100_000, 0.70, 0.60),
    Row("get-64k", "GET 64 KiB, 32 connections",
        ["--mode", "get", "--connections", "32", "--bytes", "65536"], 20_000, 0.95, 0.85),
    Row("new", "one connection per request",
        ["--mode", "new", "--connections", "32"], 20_000, 0.90, 0.82),
    Row("tunnel", "CONNECT, one exchange, close",
        ["--mode", "tunnel", "--connections", "32"], 16_000, 1.00, 0.92),
    Row("echo", "512 bytes there and back in 64 open tunnels",
        ["--mode", "echo", "--connections", "64"], 100_000, 0.82, 0.72),
    Row("down", "bulk from the upstream, 8 tunnels",
        ["--mode", "down", "--connections", "8"], 4 * GB, 1.10, 1.00, bulk=True),
    Row("up", "bulk to the upstream, 8 tunnels",
        ["--mode", "up", "--connections", "8"], 4 * GB, 1.10, 1.00, bulk=True),
    Row("rate", "4,000 requests a second, open loop",
        ["--mode", "rate", "--connections", "32", "--rate", "4000"], 10_000, 0.95, 0.86),
]
IDLE = Row("idle", "own memory of an idle tunnel", ["--mode", "idle"], 4_000, 0.35, 0.10)
MANY = Row("many", "set-up of a tunnel, 100,000 proxies against 64", ROWS[4].client, 16_000, 1.03, 1.0)
# Per GET, round trip and tunnel; they do not wander with the machine.
CALLS = {"get": 4.5, "echo": 4.5, "tunnel": 25}
SLOW = {"squid": 0.25}  # so much of the work is enough to know


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = pathlib.Path(folder)
        self.tools = pathlib.Path(options.programs) / "bench"
        self.upstream = systems.start(
            systems.LOAD_CORE, self.folder / "upstream.txt", str(self.tools / "compare_upstream"),
            "--port", str(systems.UPSTREAM_PORT), "--ports", str(systems.UPSTREAM_PORTS))
        self.runs = []

    def client(self, row, system, work):
        auth = systems.UPSTREAM_AUTH if system.name == "direct" else systems.AUTH
        amount = "--bytes" if row.bulk else "--count"
        return [str(self.tools / "compare_client"), *row.client, amount, str(work), "--port",
                str(system.port), "--auth", auth, "--limit", "120"]

    def ask(self, row, system, work):
        done = subprocess.run(self.client(row, system, work), capture_output=True, text=True,
                              preexec_fn=systems.on_core(systems.LOAD_CORE))
        if done.returncode != 0:
            raise systems.Failure(f"{system.name}, {row.name}: {done.stderr.strip()} {done.stdout.strip()}")
        return json.loads(done.stdout)

    def work(self, row, system):
        return int(row.work * SLOW.get(system.name, 1) * self.options.scale)

    def measure(self, row, system):
        work = self.work(row, system)
        before = system.cpu_ns()
        got = self.ask(row, system, work)
        cpu = system.cpu_ns() - before
        got["cpu"] = cpu / work if row.bulk else cpu / 1000 / got["done"]  # s a GB, or µs
        got["rate"] = (work / GB if row.bulk else got["done"]) / got["seconds"]
        return got

    def idle(self, system):
        time.sleep(0.3)
        before = system.memory_kib()
        holder = subprocess.Popen(self.client(IDLE, system, IDLE.work), text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  preexec_fn=systems.on_core(systems.LOAD_CORE))
        if holder.stdout.readline().strip() != "holding":
            raise systems.Failure(f"{system.name} did not hold {IDLE.work} tunnels")
        time.sleep(1)
        grown = system.memory_kib() - before
        holder.communicate()
        return {"cpu": grown / IDLE.work}  # KiB

    def calls(self, row, system):
        """System calls for one unit of work, counted by the kernel's own trace point."""
        work = max(2_000, self.work(row, system) // 5)
        counts = self.folder / "perf.txt"
        perf = subprocess.Popen(
            ["perf", "stat", "-x", ";", "-o", str(counts), "-e", "raw_syscalls:sys_enter", "-p",
             ",".join(map(str, system.processes()))], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        got = self.ask(row, system, work)
        perf.send_signal(signal.SIGINT)
        perf.wait(10)
        for line in counts.read_text().splitlines():
            if "sys_enter" in line and line[0].isdigit():
                return int(line.split(";")[0]) / got["done"]
        raise systems.Failure(f"perf counted nothing: {counts.read_text()}")

    def note(self, row, system, repetition, got):
        self.runs.append({"row": row.name, "system": system.name, "repetition": repetition, **got})
        print(f"  {repetition + 1}  {row.name:9} {system.name:13} {got['cpu']:10.3f}", flush=True)

    def all_rows(self, measured):
        wanted = self.options.rows
        for repetition in range(self.options.repetitions):
            for row in ROWS:
                if row.name not in wanted:
                    continue
                for system in measured:
                    if system.name == "direct" and row.name != "rate":
                        continue
                    self.note(row, system, repetition, self.measure(row, system))
        if IDLE.name in wanted:
            for system in measured[:-1]:
                # What it once needed is still its own, and would hide what a tunnel takes.
                system.stop()
                system.start()
                self.ask(ROWS[0], system, 1_000)
                self.note(IDLE, system, 0, self.idle(system))

    def many(self, small):
        large = systems.LargeGateway(self.folder, self.options.programs)
        print("  starting a gateway with 100,000 proxies", flush=True)
        try:
            large.start()
            for repetition in range(max(3, self.options.repetitions)):
                for system in (small, large):
                    self.note(MANY, system, repetition, self.measure(MANY, system))
        finally:
            large.stop()

    def stop(self):
        systems.ended(self.upstream)

    def values(self, row, system, what="cpu"):
        return [run[what] for run in self.runs if run["row"] == row.name and run["system"] == system]

    def ratio(self, row, system, base="haproxy", what="cpu"):
        """Median of the ratios within each repetition."""
        pairs = list(zip(self.values(row, system, what), self.values(row, base, what)))
        return statistics.median(a / b for a, b in pairs) if pairs and all(b for _, b in pairs) else None


def verdict(ratio, row):
    if ratio <= row.stretch:
        return "stretch"
    return "goal" if ratio <= row.goal else "better" if ratio < 1 else "MISSED"


def show(bench, calls):
    print(f"\n{'row':44} {'HAProxy':>9} {'ours':>9} {'ratio':>6} {'Squid':>6}  goal   verdict")
    for row in [*ROWS, IDLE]:
        ratio = bench.ratio(row, "gateway")
        if ratio is None:
            continue
        unit = "s/GB" if row.bulk else "KiB" if row is IDLE else "µs"
        medians = [statistics.median(bench.values(row, name)) for name in ("haproxy", "gateway")]
        squid = bench.ratio(row, "squid")
        print(f"{row.what + ', ' + unit:44} {medians[0]:9.3f} {medians[1]:9.3f} {ratio:6.2f} "
              f"{squid if squid is None else format(squid, '6.2f')}  ≤{row.goal:.2f}  {verdict(ratio, row)}")
    many = bench.ratio(MANY, "gateway-100k", "gateway")
    if many is not None:
        print(f"{MANY.what:44} {'fails':>9} {'':9} {many:6.2f} {'':6}  ≤{MANY.goal:.2f}  "
              f"{'goal' if many <= MANY.goal else 'MISSED'}")
    print("\nlatency, µs (ratio to HAProxy)                p50            p99          p99.9    a second, ours / HAProxy")
    for row in ROWS:
        if bench.ratio(row, "gateway") is None or row.bulk:
            continue
        cells = []
        for what in ("p50_us", "p99_us", "p999_us"):
            ours = statistics.median(bench.values(row, "gateway", what))
            cells.append(f"{ours:8.0f} ({bench.ratio(row, 'gateway', 'haproxy', what):.2f})")
        rates = [statistics.median(bench.values(row, name, "rate")) for name in ("gateway", "haproxy")]
        print(f"{row.what:38} {' '.join(cells)}  {rates[0]:9.0f} / {rates[1]:.0f}")
    show_added(bench)
    if calls:
        print("\nsystem calls for one                ours  HAProxy  goal")
        for name, found in calls.items():
            state = "" if found["gateway"] <= CALLS[name] else "  MISSED"
            print(f"{name:33} {found['gateway']:6.1f} {found['haproxy']:8.1f}  ≤{CALLS[name]}{state}")


def show_added(bench):
    """What each adds to the median at a fixed rate."""
    rate = ROWS[-1]
    direct = bench.values(rate, "direct", "p50_us")
    if not direct:
        return
    added = {name: [p50 - none for p50, none in zip(bench.values(rate, name, "p50_us"), direct)]
             for name in ("gateway", "haproxy")}
    ratio = statistics.median(a / b for a, b in zip(added["gateway"], added["haproxy"]))
    print(f"added to the median at 4,000 a second: ours {statistics.median(added['gateway']):.0f} µs, "
          f"HAProxy {statistics.median(added['haproxy']):.0f} µs, ratio {ratio:.2f} (goal 1.00)")


def counts_calls(options):
    return options.own_network and "calls" in options.rows


def compare(options, folder):
    bench = Bench(options, folder)
    measured = [systems.Gateway(folder, options.programs), systems.HaProxy(folder),
                systems.Squid(folder), systems.Direct(folder)]
    calls = {}
    try:
        for system in measured:
            system.start()
            bench.ask(ROWS[0], system, 3_000)
            bench.ask(ROWS[4], system, 300)
        bench.all_rows(measured)
        if counts_calls(options):
            for row in (row for row in ROWS if row.name in CALLS):
                calls[row.name] = {s.name: bench.calls(row, s) for s in measured[:2]}
        if MANY.name in options.rows:
            bench.many(measured[0])
    finally:
        for system in measured:
            system.stop()
        bench.stop()
    show(bench, calls)
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps({"runs": bench.runs, "calls": calls}, indent=1))


def main():
    names = [row.name for row in ROWS] + ["idle", "many", "calls"]
    parser = argparse.ArgumentParser(prog="tests/bench/compare.sh")
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--own-network", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rows", default=",".join(names))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="more or less work in each row")
    parser.add_argument("--out", help="a file for every single figure, JSON")
    options = parser.parse_args()
    if options.list:
        print("\n".join(names))
        return 0
    options.rows = options.rows.split(",")
    unknown = [name for name in options.rows if name not in names]
    if unknown:
        parser.error(f"no row {unknown[0]}; there are {', '.join(names)}")
    missing = systems.missing("haproxy", "squid", *(["perf"] if counts_calls(options) else []))
    if missing:
        print(f"not installed: {', '.join(missing)}; run deploy/local/packages.sh bench",
              file=sys.stderr)
        return 1
    if options.own_network:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        # No pacing timers, and no port used twice within a minute.
        subprocess.run(["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno",
                        "net.ipv4.ip_local_port_range=10000 60999", "net.core.somaxconn=4096"], check=True)
    os.environ["PATH"] += ":/usr/sbin"
    folder = tempfile.mkdtemp(prefix="compare-")
    os.chmod(folder, 0o755)
    try:
        compare(options, folder)
    except systems.Failure as failure:
        print(f"compare.sh: {failure}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
