"""A cluster of real programs on ports of the kernel's choice, for tests of its APIs from outside."""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

PATIENCE = 60  # seconds; a debug build on a busy machine


def eventually(condition, what):
    """Asks until the answer is true, and returns it."""
    end = time.monotonic() + PATIENCE
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"after {PATIENCE} s still not: {what}")
        time.sleep(0.05)


class Program:
    def __init__(self, path, arguments, folder):
        self.name = os.path.basename(path)
        self.log = open(folder / f"{self.name}-{time.monotonic_ns()}.log", "w+b")
        self.process = subprocess.Popen([path, *arguments], cwd=folder, stdout=subprocess.DEVNULL,
                                        stderr=self.log, stdin=subprocess.DEVNULL)

    def said(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def port(self, listener):
        """The port of one of its listeners, once that is open."""
        def look():
            found = re.search(rf'listener="?{listener}"? address=\S+:(\d+)', self.said())
            if not found and self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended with {self.process.returncode}:\n{self.said()}")
            return found and int(found[1])
        return eventually(look, f"{self.name} listens for {listener}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
        self.log.close()
        return self.process.returncode


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.type = response.headers.get_content_type() if response.headers["Content-Type"] else None
        self.body = body

    def json(self):
        return json.loads(self.body)


def ask(port, method, path, headers=None, body=None):
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return Answer(response, response.read())
    finally:
        connection.close()


class Cluster:
    """Programs are started with start_…(); leaving the `with` ends them."""

    def __init__(self, programs):
        self.programs = os.path.abspath(programs)
        self.running = []

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="proxypool-apis-")
        self.folder = pathlib.Path(self.temporary.name)
        return self

    def __exit__(self, *_):
        for program in reversed(self.running):
            program.stop()
        self.temporary.cleanup()

    def start(self, name, *arguments):
        program = Program(os.path.join(self.programs, name), arguments, self.folder)
        self.running.append(program)
        return program

    def start_fixture(self, *arguments):
        """Answers what it says about its ports."""
        ready = self.folder / f"fixture-{len(self.running)}.json"
        self.start("proxy-loadgen", "fixture", "--ready-file", str(ready), *arguments)
        eventually(lambda: ready.exists() and ready.read_text().endswith("\n"), "the fixture is ready")
        return json.loads(ready.read_text())

    def start_controller(self, settings):
        config = self.folder / f"controller-{len(self.running)}.yaml"
        config.write_text(json.dumps(settings))  # JSON is YAML
        self.controller_config = config
        return self.start("proxy-controller", "--config", str(config))

    def reconfigure(self, changed):
        """Other sections for the controller that was started last; nobody is told."""
        following = self.folder / "following.yaml"
        following.write_text(json.dumps({**self.settings, **changed}))
        following.rename(self.controller_config)

    def start_gateway(self, settings, control_port):
        config = self.folder / "gateway.yaml"
        config.write_text(json.dumps(settings))
        return self.start("proxy-gateway", "--config", str(config),
                          "--control-plane", f"127.0.0.1:{control_port}", "--zone", "here")

    def start_checker(self, control_port):
        config = self.folder / "checker.yaml"
        config.write_text(json.dumps({"checker": {"metrics": {"listen": "127.0.0.1:0"}}}))
        return self.start("proxy-checker", "--config", str(config),
                          "--control-plane", f"127.0.0.1:{control_port}")


ANYWHERE = "127.0.0.1:0"


def controller_settings(**more):
    """On free ports, with its state in the folder that it runs in."""
    settings = {
        "storage": {"stateDir": "state"},
        "controlPlane": {"listen": ANYWHERE},
        "controller": {"metrics": {"listen": ANYWHERE}, "watch": "0s"},
        "distribution": {"listen": ANYWHERE},
        "admin": {"listen": ANYWHERE},
    }
    for key, value in more.items():
        settings.setdefault(key, {})
        settings[key] = {**settings[key], **value} if isinstance(value, dict) else value
    return settings


def list_line(proxy, account):
    return f"http://{account['user']}:{account['password']}@127.0.0.1:{proxy['port']}"


class ServingCluster(Cluster):
    """Everything: a list and a vendor with proxies that work, a checker and a gateway."""

    def __enter__(self):
        super().__enter__()
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin(self):
        # So many that a second gateway hardly ever (one time in 2^12) gets none of them.
        self.list = self.start_fixture("--proxies", "24")
        self.vendor = self.start_fixture("--proxies", "24", "--ttl", "20m")
        (self.folder / "list.txt").write_text(
            "".join(list_line(proxy, self.list) + "\n" for proxy in self.list["proxies"]))
        self.settings = self.make_settings()
        self.controller = self.start_controller(self.settings)
        self.control_port = self.controller.port("control plane")
        self.checker = self.start_checker(self.control_port)
        self.gateway_settings = {"gateway": {"listen": ANYWHERE, "metrics": {"listen": ANYWHERE},
                                             "auth": {"mode": "ipWhitelist"}}}
        self.gateway = self.start_gateway(self.gateway_settings, self.control_port)
        self.distribution = self.controller.port("distribution")
        self.admin = self.controller.port("admin")
        self.proxy = self.gateway.port("gateway")
        eventually(self.serves, "the gateway serves and both upstreams have proxies")

    def make_settings(self):
        origin = self.list["origin"]["port"]
        return controller_settings(
            gateway={"target": {"allowCIDRs": ["127.0.0.0/8"]}},
            controlPlane={"lease": "5s"},
            clients=[{"name": "crawler", "sources": ["127.0.0.0/8"],
                      "limits": {"bytesPerDay": "1GiB"}}],
            check={"basic": {"interval": "5s", "target": f"127.0.0.1:{origin}"}},
            upstreams=[
                {"id": "list", "provider": {"type": "file", "path": "list.txt"},
                 "extraction": {"extractable": True, "reserve": 6}},
                {"id": "vendor",
                 "provider": {
                     "type": "http",
                     "request": {
                         "url": f"http://127.0.0.1:{self.vendor['vendor']['port']}/json/list",
                         "query": {"count": "{{ batch }}"}},
                     "response": {"format": "json"},
                     "records": {"from": "body.data.list[*]"},
                     "map": {"host": "item.ip", "port": "item.port", "username": "item.user",
                             "password": "item.pass", "country": "item.country",
                             "region": "item.region", "city": "item.city",
                             "carrier": "item.carrier"}},
                 "fetch": {"requestInterval": "200ms", "estimatedIPsPerCall": 6},
                 "pool": {"defaultTTL": "15m"},
                 "extraction": {"reserve": 6},
                 "allowPrivateAddresses": True}],
            routings=[{"id": "first", "strategy": "first", "match": {"hosts": ["first.test"]},
                       "upstreams": [{"id": "vendor"}, {"id": "list"}]},
                      {"id": "in-turn", "strategy": "sequential",
                       "match": {"hosts": ["in-turn.test"]},
                       "upstreams": [{"id": "vendor"}, {"id": "list"}]},
                      {"id": "everything", "upstreams": [{"id": "list"}, {"id": "vendor"}]}])

    def serves(self):
        if self.status_of_request() != 200:
            return False
        status = ask(self.admin, "GET", "/v1/status").json()
        return all(upstream["proxies"]["owned"] > 0 and upstream["proxies"]["unowned"] > 2
                   for upstream in status["upstreams"])

    def status_of_request(self):
        """Of one request through the gateway."""
        origin = f"127.0.0.1:{self.list['origin']['port']}"
        return ask(self.proxy, "GET", f"http://{origin}/", {"Host": origin}).status
