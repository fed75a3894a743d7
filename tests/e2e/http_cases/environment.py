"""The programs under test, as child processes, with the set-up that a case asks for."""

import asyncio
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import tempfile
import urllib.error
import urllib.request

START_S = 30
ALLOW_198 = {"access": {"allowCIDRs": ["198.51.100.7/32"]}}
EXPECTS_HEADER = {"trustedProxies": ["127.0.0.1"], "proxyProtocol": "required"}

# What the words behind `chain` or `direct` in a case's mode mean for the gateway's configuration.
SETUPS = {
    "allow-list 198.51.100.7/32, no trusted proxies": ALLOW_198,
    "PROXY protocol expected, allow-list holds only 198.51.100.7":
        {"access": {**ALLOW_198["access"], **EXPECTS_HEADER}},
    "PROXY protocol not configured for this peer": {},
    "body idle limit 3 s": {"transport": {"idle": "3s"}},
    "loopback allowed for the test": {"target": {"allowCIDRs": ["127.0.0.0/8"]}},
}


class Unsupported(Exception):
    """The gateway of this build has no such set-up."""


def setup(case):
    """The gateway's part of the configuration, the password of its one client or None, and whether
    it goes direct."""
    mode, *rest = case.get("mode", "chain").split(", ", 1)
    if mode not in ("chain", "direct") or (rest and rest[0] not in SETUPS):
        raise Unsupported(case["mode"])
    own = dict(SETUPS[rest[0]]) if rest else {}
    client = case["ingress_auth"].removeprefix("basic ") if "ingress_auth" in case else None
    return own, client, mode == "direct"


def free_ports(count):
    """Ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def configuration(folder, upstream_port, own, client, direct):
    """One file for all three programs."""
    names = ["control", "proxy", "metrics", "distribution", "admin", "controller", "checker"]
    at = dict(zip(names, (f"127.0.0.1:{port}" for port in free_ports(len(names)))))
    gateway = {"listen": at["proxy"], "controlPlane": at["control"],
               "metrics": {"listen": at["metrics"]}, "threads": 1, "bench": "0s", **own}
    config = {
        "storage": {"stateDir": str(folder / "state")},
        "controlPlane": {"listen": at["control"]},
        "gateway": gateway,
        "distribution": {"listen": at["distribution"]},
        "admin": {"listen": at["admin"]},
        "controller": {"metrics": {"listen": at["controller"]}},
        "checker": {"controlPlane": at["control"], "metrics": {"listen": at["checker"]}},
        # A case must not put the only proxy aside.
        "check": {"basic": {"interval": "24h", "failureThreshold": 100}},
        "upstreams": [{"id": "vendor", "pool": {"maxConcurrency": 1000}, "provider": {
            "type": "static", "proxies": [f"http://vuser:vpass@127.0.0.1:{upstream_port}"]}}],
        "routings": [{"id": "all", "upstreams": [{"id": "vendor"}]}],
    }
    if direct:
        config["upstreams"] = []
        config["routings"] = [{"id": "all", "upstreams": [], "onUnavailable": "direct"}]
    if client is not None:
        name, password = client.split(":")
        secret = folder / "password"
        secret.write_text(password, encoding="utf-8")
        gateway["auth"] = {"mode": "usernamePassword"}
        config["clients"] = [{"name": name, "credentials": {"gateway": {"file": str(secret)}}}]
    return config, at


class Cluster:
    """Controller and gateway with one proxy, which is the upstream of the case.

    The checker runs until it has found that the proxy works; its probes would get into the cases.
    """

    def __init__(self, folder, at, direct):
        self.folder = folder
        self.direct = direct
        host, port = at["proxy"].split(":")
        self.address = (host, int(port))
        self.metrics = f"http://{at['metrics']}"
        self.children = {}

    @classmethod
    async def start(cls, programs, upstream, wanted):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="http-cases-"))
        config, at = configuration(folder, upstream.port, *wanted)
        (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
        # Where the gateway goes direct the upstream plays every origin there is.
        (folder / "network").write_text(
            f"name .example 203.0.113.7\ndial * {upstream.port}\n", encoding="utf-8")
        cluster = cls(folder, at, wanted[2])
        try:
            for name in ("controller", "checker", "gateway"):
                await cluster.run(pathlib.Path(programs), name)
            await cluster.serves()
            await cluster.end("checker")
        except BaseException:
            await cluster.stop()
            raise
        return cluster

    async def run(self, programs, name):
        network = {}
        if self.direct and name == "gateway":
            network = {"PROXYPOOL_TEST_NETWORK": str(self.folder / "network"),
                       "LD_PRELOAD": str(programs.parent / "tests/libtest_network.so")}
        with open(self.folder / f"{name}.log", "wb") as log:
            self.children[name] = await asyncio.create_subprocess_exec(
                programs / f"proxy-{name}", "--config", self.folder / "config.yaml",
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **network})

    async def serves(self):
        end = asyncio.get_running_loop().time() + START_S
        while True:
            try:
                await self.read("/readyz")
                proxies = 0 if self.direct else 1
                if re.search(rf"(?m)^proxypool_gateway_proxies(\{{\}})? {proxies}$",
                             await self.read("/metrics")):
                    return
            except (urllib.error.URLError, ConnectionError):
                pass
            dead = [name for name, child in self.children.items() if child.returncode is not None]
            if dead or asyncio.get_running_loop().time() > end:
                logs = "\n".join(path.read_text(errors="replace") for path in self.folder.glob("*.log"))
                raise RuntimeError(f"does not serve, ended: {dead}\n{logs}")
            await asyncio.sleep(0.05)

    async def read(self, path):
        def fetch():
            with urllib.request.urlopen(self.metrics + path, timeout=5) as answer:
                return answer.read().decode()
        return await asyncio.to_thread(fetch)

    @property
    def alive(self):
        return self.children["gateway"].returncode is None

    async def gauges(self):
        """Active requests and tunnels, as /metrics shows them."""
        text = await self.read("/metrics")
        found = re.findall(r"(?m)^proxypool_gateway_active_(requests|tunnels)(?:\{\})? (\d+)", text)
        return {name: int(value) for name, value in found}

    async def end(self, name):
        child = self.children[name]
        if child.returncode is None:
            child.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(child.wait(), 15)
            except asyncio.TimeoutError:
                child.kill()
                await child.wait()
        return child.returncode

    async def stop(self):
        """What went wrong at the end."""
        codes = {name: await self.end(name) for name in reversed(list(self.children))}
        shutil.rmtree(self.folder, ignore_errors=True)
        return [f"proxy-{name} ended with {code}" for name, code in codes.items() if code != 0]


class Pipe:
    """A program in the gateway's place that only has ports."""

    def __init__(self, process, ports):
        self.process = process
        self.address = ("127.0.0.1", ports["proxy"])

    @classmethod
    async def start(cls, program, upstream, _):
        process = await asyncio.create_subprocess_exec(
            program, str(upstream.port), stdout=asyncio.subprocess.PIPE)
        line = await asyncio.wait_for(process.stdout.readline(), START_S)
        return cls(process, json.loads(line))

    alive = True

    async def gauges(self):
        return {"requests": 0, "tunnels": 0}

    async def stop(self):
        self.process.terminate()
        await self.process.wait()
        return []
