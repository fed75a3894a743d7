#!/usr/bin/env python3
"""Sends one request through the gateway, and says how it was answered and which proxy served it.

    request.py GATEWAY URL PID

GATEWAY is its address:port, PID its process. PROXY_USER=NAME:PASSWORD in the environment are the
credentials for it. Ends with 0 after an answer of 2xx or 3xx, and with 1 and the reason otherwise.

The gateway keeps no record of single requests, but its process shows which proxy it is connected
to: of the connections that it opens while the request is under way, the last one brought the
answer, since a retry comes after what failed.
"""
import base64
import http.client
import os
import socket
import struct
import sys
import threading
import urllib.parse

PATIENCE_SECONDS = 20
SHOWN_BYTES = 2000
ESTABLISHED, LISTENING = "01", "0A"


def address_of(text):
    """An entry of /proc/net/tcp: words of four bytes in the machine's order, then the port."""
    words, port = text.split(":")
    data = b"".join(struct.pack("=I", int(words[i : i + 8], 16)) for i in range(0, len(words), 8))
    if data.startswith(bytes(10) + b"\xff\xff"):
        data = data[12:]
    family = socket.AF_INET if len(data) == 4 else socket.AF_INET6
    host = socket.inet_ntop(family, data)
    return f"[{host}]" if ":" in host else host, int(port, 16)


def outgoing(pid):
    """The connections that the process has opened: who is at the other end, by socket number."""
    own = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            own.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue  # closed meanwhile
    listening, peers = set(), {}
    for table in ("tcp", "tcp6"):
        try:
            rows = open(f"/proc/{pid}/net/{table}").read().splitlines()[1:]
        except OSError:
            continue  # a system without IPv6
        for row in rows:
            local, remote, state, inode = (row.split()[i] for i in (1, 2, 3, 9))
            if f"socket:[{inode}]" not in own:
                continue
            if state == LISTENING:
                listening.add(address_of(local)[1])
            elif state == ESTABLISHED:
                peers[inode] = address_of(local)[1], "%s:%d" % address_of(remote)
    return {inode: peer for inode, (port, peer) in peers.items() if port not in listening}


class Watch:
    """Looks again and again at what the gateway opens, until it is stopped."""

    def __init__(self, pid):
        self.pid, self.peers, self.before = pid, [], outgoing(pid)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def look(self):
        for inode, peer in outgoing(self.pid).items():
            if inode not in self.before:
                self.before[inode] = peer
                self.peers.append(peer)

    def run(self):
        while not self.ended.wait(0.002):
            self.look()

    def stop(self):
        self.ended.set()
        self.thread.join()
        self.look()
        return self.peers


def credentials():
    user = os.environ.get("PROXY_USER", "")
    if not user:
        return {}
    return {"Proxy-Authorization": "Basic " + base64.b64encode(user.encode()).decode()}


def send(gateway, url):
    """The open connection and the answer; an https URL goes through a tunnel."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(gateway, timeout=PATIENCE_SECONDS)
        connection.set_tunnel(parts.hostname, parts.port or 443, credentials())
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {}
    else:
        connection = http.client.HTTPConnection(gateway, timeout=PATIENCE_SECONDS)
        target = parts._replace(path=parts.path or "/", fragment="").geturl()
        headers = credentials()
    connection.request("GET", target, headers={"User-Agent": "proxy-pool-run", **headers})
    return connection, connection.getresponse()


def main(gateway, url, pid):
    watch = Watch(pid)
    try:
        connection, answer = send(gateway, url)
        body = answer.read(SHOWN_BYTES).decode(errors="replace")
    except (OSError, ValueError, http.client.HTTPException) as failure:
        sys.exit(f"run.sh: {url} was not answered: {failure}")
    peers = watch.stop()  # before ours is closed, so that what served it is still open
    connection.close()
    print(f"==> Answer:   {answer.status}")
    for line in body.splitlines():
        print("    " + line)
    if not 200 <= answer.status < 400:
        sys.exit(f"run.sh: {url} was answered with status {answer.status}; see above")
    if peers:
        print(f"==> Served by the proxy at {peers[-1]}, as the gateway's own connections show")
    else:
        print("==> Served by a proxy that had closed its connection before it could be named")


if __name__ == "__main__":
    main(*sys.argv[1:])
