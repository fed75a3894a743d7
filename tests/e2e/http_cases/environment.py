"""The gateway under test, as a child process with one set-up."""

import asyncio
import json
import re
import signal
import urllib.request

# What the words behind `chain` and `direct` in a case's mode mean for the command line.
OPTIONS = {
    "allow-list 198.51.100.7/32, no trusted proxies": ["--allow-cidr", "198.51.100.7/32"],
    "PROXY protocol not configured for this peer": [],
    "body idle limit 3 s": ["--idle-ms", "3000"],
}


class Unsupported(Exception):
    """The gateway of this build has no such set-up."""


def arguments(case):
    mode, *rest = case.get("mode", "chain").split(", ", 1)
    if mode != "chain":
        raise Unsupported(mode)
    options = []
    if rest:
        if rest[0] not in OPTIONS:
            raise Unsupported(case["mode"])
        options += OPTIONS[rest[0]]
    if "ingress_auth" in case:
        options += ["--auth", case["ingress_auth"].removeprefix("basic ")]
    return options


class Gateway:
    def __init__(self, process, ports):
        self.process = process
        self.address = ("127.0.0.1", ports["proxy"])
        self.metrics = f"http://127.0.0.1:{ports['metrics']}/metrics"

    @classmethod
    async def start(cls, program, upstream_port, options):
        process = await asyncio.create_subprocess_exec(
            program, "--proxy", f"127.0.0.1:{upstream_port}:vuser:vpass", *options,
            stdout=asyncio.subprocess.PIPE)
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        return cls(process, json.loads(line))

    @property
    def alive(self):
        return self.process.returncode is None

    async def gauges(self):
        """Active requests and tunnels, as /metrics shows them."""
        def read():
            with urllib.request.urlopen(self.metrics, timeout=5) as answer:
                return answer.read().decode()
        text = await asyncio.to_thread(read)
        found = re.findall(r"(?m)^proxypool_gateway_active_(requests|tunnels)(?:\{\})? (\d+)", text)
        return {name: int(value) for name, value in found}

    async def stop(self):
        if self.alive:
            self.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self.process.wait(), 10)
            except asyncio.TimeoutError:
                self.process.kill()
                await self.process.wait()
        return self.process.returncode
