"""The systems that are compared: how each is configured, started, looked at and stopped."""

import base64
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

SYSTEM_CORE, LOAD_CORE = 0, 1
UPSTREAM_PORT, UPSTREAM_PORTS = 61000, 64
USER, PASSWORD = "client", "right-password"
AUTH = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
UPSTREAM_AUTH = base64.b64encode(b"up:secret").decode()
START_S = 120


class Failure(Exception):
    """A measurement that cannot be made; the text says what to do."""


def on_core(core):
    """For a child: its core, and an end when this process ends however it does."""
    libc = ctypes.CDLL(None)

    def prepare():
        os.sched_setaffinity(0, {core})
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    return prepare


def start(core, log, *command, **environment):
    with open(log, "ab") as output:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                preexec_fn=on_core(core), env={**os.environ, **environment})


def ended(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def accepts(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class System:
    """One process with its children, on the system's core."""

    name = port = None

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / self.name
        self.folder.mkdir()
        self.folder.chmod(0o777)  # Squid drops its rights
        self.log = self.folder / "log.txt"
        self.process = None

    def run(self, *command, **environment):
        self.process = start(SYSTEM_CORE, self.log, *map(str, command), **environment)
        self.await_(lambda: accepts(self.port))

    def await_(self, condition):
        end = time.monotonic() + START_S
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                said = self.log.read_text(errors="replace")[-2000:]
                raise Failure(f"{self.name} does not serve:\n{said}")
            time.sleep(0.05)

    def stop(self):
        if self.process:
            ended(self.process)

    def processes(self):
        """This process and its descendants."""
        children = {}
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(stat.parent.name))
        found = [self.process.pid]
        for pid in found:
            found += children.get(pid, [])
        return found

    def cpu_ns(self):
        """CPU time of all threads so far, the kernel's work for them included."""
        total = 0
        for pid in self.processes():
            for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
                total += int(stat.read_text().split()[0])
        return total

    def memory_kib(self):
        total = 0
        for pid in self.processes():
            found = re.search(r"(?m)^Rss:\s+(\d+)", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text())
            total += int(found.group(1))
        return total


class Gateway(System):
    """Ours: controller and checker have the load's core, as if on another machine."""

    name, port = "gateway", 3128
    proxies = UPSTREAM_PORTS

    def __init__(self, folder, programs):
        super().__init__(folder)
        self.bin = pathlib.Path(programs) / "bin"
        self.others = []
        listed = self.folder / "proxies.txt"
        listed.write_text("".join(
            f"http://up{i // UPSTREAM_PORTS or ''}:secret@127.0.0.1:{UPSTREAM_PORT + i % UPSTREAM_PORTS}\n"
            for i in range(self.proxies)))
        at = {name: f"127.0.0.1:{self.port + 1 + i}" for i, name in enumerate(
            ["control", "metrics", "distribution", "admin", "controller", "checker"])}
        self.metrics = f"http://{at['metrics']}/metrics"
        config = {
            "storage": {"stateDir": str(self.folder / "state")},
            "controlPlane": {"listen": at["control"]},
            "gateway": {"listen": f"127.0.0.1:{self.port}", "controlPlane": at["control"],
                        "metrics": {"listen": at["metrics"]}, "threads": 1,
                        "auth": {"mode": "usernamePassword"}},
            "distribution": {"listen": at["distribution"]},
            "admin": {"listen": at["admin"]},
            "controller": {"metrics": {"listen": at["controller"]}},
            "checker": {"controlPlane": at["control"], "metrics": {"listen": at["checker"]},
                        "maxInFlight": 64},
            "check": {"basic": {"interval": "24h"}},
            "clients": [{"name": USER, "credentials": {"gateway": {"env": "COMPARE_PASSWORD"}}}],
            "upstreams": [{"id": "vendor", "pool": {"maxConcurrency": 4000},
                           "provider": {"type": "file", "path": str(listed)}}],
            "routings": [{"id": "all", "upstreams": [{"id": "vendor"}]}],
        }
        self.config = self.folder / "config.yaml"
        self.config.write_text(json.dumps(config))

    def start(self):
        password = {"COMPARE_PASSWORD": PASSWORD}
        for name in ("controller", "checker"):
            self.others.append(start(LOAD_CORE, self.folder / f"{name}.txt", str(
                self.bin / f"proxy-{name}"), "--config", str(self.config), **password))
        self.run(self.bin / "proxy-gateway", "--config", self.config, **password)
        self.await_(self.serves_all)
        ended(self.others.pop())  # the checker has done its work

    def serves_all(self):
        try:
            with urllib.request.urlopen(self.metrics, timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return False
        found = re.search(r"(?m)^proxypool_gateway_proxies(?:\{\})? ([\d.e+]+)$", text)
        return found is not None and int(float(found.group(1))) == self.proxies

    def stop(self):
        super().stop()
        while self.others:
            ended(self.others.pop())


class LargeGateway(Gateway):
    """The same with as many proxies as the design target has."""

    name, port, proxies = "gateway-100k", 3228, 100_000


class HaProxy(System):
    name, port = "haproxy", 3528

    def start(self):
        servers = "\n".join(f"  server s{i} 127.0.0.1:{UPSTREAM_PORT + i}" for i in range(UPSTREAM_PORTS))
        config = self.folder / "haproxy.cfg"
        config.write_text(f"""global
  maxconn 7000
  nbthread 1
  tune.pipesize 262144
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  timeout tunnel 300s
  timeout http-keep-alive 75s
  option splice-request
  option splice-response
userlist clients
  user {USER} insecure-password {PASSWORD}
frontend in
  bind 127.0.0.1:{self.port}
  option http-use-proxy-header
  http-request auth realm pool unless {{ http_auth(clients) }}
  http-request set-header Proxy-Authorization "Basic {UPSTREAM_AUTH}"
  default_backend out
backend out
  balance leastconn
  http-reuse always
{servers}
""")
        self.run("haproxy", "-db", "-f", config)


class Squid(System):
    name, port = "squid", 3628

    def start(self):
        hashed = subprocess.run(["openssl", "passwd", "-apr1", PASSWORD], check=True, text=True,
                                capture_output=True).stdout.strip()
        (self.folder / "passwords").write_text(f"{USER}:{hashed}\n")
        peers = "\n".join(
            f"cache_peer 127.0.0.1 parent {UPSTREAM_PORT + i} 0 no-query no-digest "
            f"no-netdb-exchange round-robin name=p{i} login=up:secret" for i in range(UPSTREAM_PORTS))
        config = self.folder / "squid.conf"
        config.write_text(f"""http_port 127.0.0.1:{self.port}
max_filedescriptors 16000
cache deny all
cache_mem 8 MB
access_log none
cache_log {self.folder}/cache.log
cache_store_log none
pid_filename none
coredump_dir {self.folder}
pinger_enable off
shutdown_lifetime 0 seconds
via off
forwarded_for delete
dns_nameservers 127.0.0.1
auth_param basic program /usr/lib/squid/basic_ncsa_auth {self.folder}/passwords
auth_param basic children 2 startup=1
auth_param basic credentialsttl 2 hours
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
never_direct allow all
nonhierarchical_direct off
{peers}
""")
        self.run("squid", "-N", "-f", config)


class Direct(System):
    """No proxy at all: what the clients measure of themselves and of the upstream."""

    name, port = "direct", UPSTREAM_PORT

    def start(self):
        pass

    def cpu_ns(self):
        return 0


def missing(*names):
    """Which of these programs are not installed."""
    path = os.environ.get("PATH", "") + ":/usr/sbin"
    return [name for name in names if not shutil.which(name, path=path)]
