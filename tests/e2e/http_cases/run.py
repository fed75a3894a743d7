#!/usr/bin/env python3
"""Runs the HTTP cases (tests/fixtures/http-cases) against the real programs.

usage: run.py --programs FOLDER [--cases FILE] [--only B001,B084] [--jobs 4] [--patience S]
       run.py --pipe PROGRAM …   a plain pipe in the gateway's place; most cases must fail

Prints one line for each case that fails or cannot be run, and a summary. Exit code 0 when all that
can be run pass, and with --pipe when most do not.
"""

import argparse
import asyncio
import base64
import functools
import json
import os
import pathlib
import sys
import time

import environment
import judge
import script

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE.parent.parent / "fixtures/http-cases/cases.json"


class Seat:
    """One upstream, and the gateways that point at it, one for each set-up."""

    def __init__(self, start):
        self.start = start
        self.upstream = script.Upstream()
        self.gateways = {}

    async def gateway(self, wanted):
        key = json.dumps(wanted)
        if key not in self.gateways:
            self.upstream.begin(script.parse("HTTP/1.1 200 OK\r\n\r\n", {}))  # for the probe
            self.gateways[key] = await self.start(self.upstream, wanted)
            await self.upstream.end()
        return self.gateways[key]

    async def end(self):
        ends = [text for gateway in self.gateways.values() for text in await gateway.stop()]
        self.upstream.close()
        return ends


async def plain_get(case, gateway, upstream):
    """The GET after each case: shows a poisoned or half-read upstream connection."""
    token = os.urandom(8).hex()
    target = f"http://plain.example/{token}".encode()
    upstream.clean = (f"/{token}".encode(), b"plain-" + token[::-1].encode())
    answering = asyncio.create_task(upstream.answer_clean())
    auth = b""
    if "ingress_auth" in case:
        pair = case["ingress_auth"].removeprefix("basic ").encode()
        auth = b"Proxy-Authorization: Basic " + base64.b64encode(pair) + b"\r\n"
    wire = await script.connect(gateway.address)
    try:
        await wire.send(b"GET " + target + b" HTTP/1.1\r\nHost: plain.example\r\n" + auth + b"\r\n")

        def answer():
            found = [a for a in judge.answers(bytes(wire.received), [b"GET"]) if not a.interim]
            return found[0] if found and (found[0].complete or wire.ended) else None
        await script.until(lambda: answer() or wire.ended, 5)
        status = answer().first if answer() else None
        if "allow-list" in case.get("mode", ""):
            return [] if status in (403, 407, None) else [f"the plain GET got {status}"]
        if status == 200 and wire.received.endswith(upstream.clean[1]):
            return []
        return [f"the plain GET got {status}: {bytes(wire.received[-120:])!r}"]
    finally:
        answering.cancel()
        wire.close()


async def idle(gateway):
    """The gauges are back at nothing."""
    end = time.monotonic() + 3
    while True:
        gauges = await gateway.gauges()
        if not any(gauges.values()) and len(gauges) == 2:
            return []
        if time.monotonic() >= end:
            return [f"gauges: {gauges}"]
        await asyncio.sleep(0.02)


async def judged(case, watch, patience):
    """Waits until the case can be judged; complaints of both kinds."""
    end = time.monotonic() + min(case["expect"].get("max_seconds", 15), patience)
    while True:
        bad = watch.positive()
        quiet = time.monotonic() - watch.last_sign() >= judge.QUIET_S
        if not bad and quiet:
            return watch.negative()
        if time.monotonic() >= end:
            return bad + watch.negative()
        await asyncio.sleep(0.01)


async def run_variant(case, seat, target, patience):
    gateway = await seat.gateway(environment.setup(case))
    values = {"PROXY_HOST": gateway.address[0], "PROXY_PORT": str(gateway.address[1])}
    send, reply = case["send"], case["upstream_reply"]
    if target:
        original = send.split("http://", 1)[1].split("/", 1)[0]
        send = send.replace(original, target)
    upstream = seat.upstream
    upstream.begin([[]] if reply is None else script.parse(reply, values))
    client = script.Client(gateway.address, script.parse(send, values), judge.whole_answers)
    playing = asyncio.create_task(client.run())
    direct = case.get("mode", "").startswith("direct")
    watch = judge.Judge(case["expect"], client, upstream, direct)
    try:
        bad = await judged(case, watch, patience)
        bad += await plain_get(case, gateway, upstream)
        await asyncio.sleep(0)
        bad += [text for text in watch.negative() if text not in bad]
    finally:
        playing.cancel()
        for wire in client.wires:
            wire.close()
        await upstream.end()
    if not gateway.alive:
        return bad + ["the gateway is gone"]
    return bad + await idle(gateway)


async def run_case(case, seat, patience):
    bad = []
    for target in [None] + case["expect"].get("variants", []):
        try:
            complaints = await run_variant(case, seat, target, patience)
        except (OSError, ConnectionError) as error:
            complaints = [f"{type(error).__name__}: {error}"]
        bad += [f"{target or ''} {text}".strip() for text in complaints]
    return bad


async def run_all(options, cases):
    waiting = sorted(cases, key=lambda c: -c["expect"].get("max_seconds", 0))
    results, skipped, seats = {}, {}, []

    if options.pipe:
        start = functools.partial(environment.Pipe.start, options.pipe)
    else:
        start = functools.partial(environment.Cluster.start, options.programs)

    async def work():
        seat = Seat(start)
        seats.append(seat)
        while waiting:
            case = waiting.pop(0)
            try:
                results[case["id"]] = await run_case(case, seat, options.patience)
            except environment.Unsupported as error:
                skipped[case["id"]] = str(error)

    await asyncio.gather(*(work() for _ in range(options.jobs)))
    ends = [text for seat in seats for text in await seat.end()]
    return results, skipped, ends


def main():
    parser = argparse.ArgumentParser()
    under_test = parser.add_mutually_exclusive_group(required=True)
    under_test.add_argument("--programs", help="folder of proxy-controller, -checker and -gateway")
    under_test.add_argument("--pipe")
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--patience", type=float, default=60, help="seconds, at most, for a case")
    options = parser.parse_args()
    cases = json.loads(pathlib.Path(options.cases).read_text(encoding="utf-8"))
    if options.only:
        cases = [c for c in cases if c["id"] in options.only.split(",")]
    results, skipped, ends = asyncio.run(run_all(options, cases))
    failed = {name: bad for name, bad in results.items() if bad}
    for name in sorted(failed):
        print(f"FAIL {name}: " + "; ".join(failed[name]))
    for name in sorted(skipped):
        print(f"not run {name}: {skipped[name]}")
    for text in ends:
        print(f"FAIL {text}")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed, {len(skipped)} not run")
    if options.pipe:
        return 0 if len(failed) > len(results) / 2 else 1
    return 1 if failed or ends or not results else 0


if __name__ == "__main__":
    sys.exit(main())
