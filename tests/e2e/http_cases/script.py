"""Scripts of the HTTP cases: what they are made of, and the two ends that play them.

The format is described in tests/fixtures/http-cases/README.md. Everything runs on one asyncio loop;
a Wire reads by itself unless it is paused, so that a script only has to look at what arrived.
"""

import asyncio
import re
import socket
import struct
import time

BUFFER_BYTES = 128 * 1024
POLL_S = 0.005
TOKEN = re.compile(rb"\{\{([A-Z_]+)(?::(.*?))?\}\}", re.S)


def parse(text, values):
    """The scripts of one end: a list (one per connection) of lists of steps (name, argument)."""
    data = text.encode("latin-1")
    for name, value in values.items():
        data = data.replace(b"{{%s}}" % name.encode(), value.encode())
    scripts, steps, pieces, at = [], [], [], 0

    def flush():
        if pieces:
            steps.append(("SEND", pieces.copy()))
            pieces.clear()

    for token in TOKEN.finditer(data):
        if token.start() > at:
            pieces.append((data[at:token.start()], 1))
        at = token.end()
        name, argument = token.group(1).decode(), token.group(2)
        if name == "REP":
            unit, count = argument.rsplit(b":", 1)
            pieces.append((unit, int(count)))
            continue
        flush()
        if name == "CONN":
            scripts.append(steps)
            steps = []
        else:
            steps.append((name, argument))
    if at < len(data):
        pieces.append((data[at:], 1))
    flush()
    scripts.append(steps)
    return scripts


def blocks(pieces):
    """The bytes of a SEND step in writes: one, unless it is large."""
    whole = b""
    for unit, count in pieces:
        if len(unit) * count <= 1 << 20:
            whole += unit * count
            continue
        if whole:
            yield whole
            whole = b""
        per_block = max(1, 65536 // len(unit))
        for first in range(0, count, per_block):
            yield unit * min(per_block, count - first)
    if whole:
        yield whole


async def until(condition, timeout_s):
    """Waits for the condition; False when the time is over."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= end:
            return False
        await asyncio.sleep(POLL_S)
    return True


class Wire:
    """A connected socket that keeps every byte it receives."""

    def __init__(self, sock, sends_after_end=False):
        self.sock = sock
        self.sends_after_end = sends_after_end  # an upstream answers a client that has finished
        self.loop = asyncio.get_running_loop()
        self.received = bytearray()
        self.sent = bytearray()  # the first megabyte
        self.accepted = 0  # bytes that the kernel took
        self.blocked_since = None
        self.eof = False
        self.error = None
        self.closed = False  # by us
        self.last_act = self.ended_at = time.monotonic()
        self.reading = False
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.resume()

    @property
    def ended(self):
        """The other side has closed or reset the connection."""
        return self.eof or self.error is not None

    def resume(self):
        if not self.reading and not self.closed and not self.ended:
            self.loop.add_reader(self.sock, self._readable)
            self.reading = True

    def pause(self):
        if self.reading:
            self.loop.remove_reader(self.sock)
            self.reading = False

    def _readable(self):
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return
        except OSError as error:
            self.error = error
            data = b""
        self.ended_at = time.monotonic()
        if data:
            self.received += data
            return
        self.eof = True
        self.pause()

    async def send(self, data):
        """False when the connection is at its end."""
        view = memoryview(data)
        self.last_act = time.monotonic()
        while view:
            if self.closed or self.error or (self.eof and not self.sends_after_end):
                return False
            try:
                count = self.sock.send(view)
            except BlockingIOError:
                self.blocked_since = self.blocked_since or time.monotonic()
                await self._writable()
                continue
            except OSError as error:
                self.error = self.error or error
                return False
            self.blocked_since = None
            self.accepted += count
            if len(self.sent) < 1 << 20:
                self.sent += view[:count]
            view = view[count:]
        return True

    async def _writable(self):
        ready = self.loop.create_future()
        self.loop.add_writer(self.sock, lambda: ready.done() or ready.set_result(None))
        try:
            await asyncio.wait([ready], timeout=0.05)
        finally:
            if not self.closed:
                self.loop.remove_writer(self.sock)
            ready.cancel()

    def shut_write(self):
        self.last_act = time.monotonic()
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self, reset=False):
        if self.closed:
            return
        self.pause()
        self.loop.remove_writer(self.sock)
        self.last_act = time.monotonic()
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.closed = True
        self.sock.close()

    async def step(self, name, argument):
        """The steps that both ends know."""
        if name == "SLEEP":
            await asyncio.sleep(int(argument) / 1000)
            self.last_act = time.monotonic()
        elif name == "STOP_READ":
            self.pause()
        elif name == "READ_ON":
            self.resume()
        elif name == "SHUT_WR":
            self.shut_write()
        elif name == "CLOSE":
            self.close()
        elif name == "RST":
            self.close(reset=True)
        else:
            raise ValueError(f"unknown token {name}")

    async def holds(self, text, timeout_s=30, start=0):
        wanted = text.lower()
        await until(lambda: wanted in self.received[start:].lower() or self.ended or self.closed,
                    timeout_s)
        return wanted in self.received[start:].lower()


async def connect(address):
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, address)
    return Wire(sock)


class Client:
    """Plays the `send` script against the gateway."""

    def __init__(self, address, scripts, whole_answers):
        self.address = address
        self.scripts = scripts
        self.whole_answers = whole_answers  # (wire) → closed after whole answers to whole requests
        self.wires = []
        self.done = False

    async def run(self):
        try:
            for number, steps in enumerate(self.scripts):
                if number > 0:
                    self.wires[-1].close()
                self.wires.append(await connect(self.address))
                if not await self._play(steps):
                    break
        finally:
            self.done = True

    async def _play(self, steps):
        for name, argument in steps:
            wire = self.wires[-1]
            if name == "SEND":
                if not await self._send(argument):
                    return False
            elif name == "WAIT":
                if not await wire.holds(argument):
                    return False
            else:
                await wire.step(name, argument)
        return True

    async def _send(self, pieces):
        if self.wires[-1].ended and self.whole_answers(self.wires[-1]):
            self.wires[-1].close()
            self.wires.append(await connect(self.address))
        for block in blocks(pieces):
            if not await self.wires[-1].send(block):
                return False
        return True

    @property
    def received(self):
        return b"".join(bytes(wire.received) for wire in self.wires)


class UpstreamConnection:
    def __init__(self, wire, number):
        self.wire = wire
        self.number = number
        self.waits_for = None  # x of the {{READ:x}} where its script stands
        self.rest = []
        self.task = None
        self.answered_clean = False

    @property
    def tunnel(self):
        """Answered a CONNECT with success, or an upgrade with 101: bytes after it are no requests."""
        status = re.search(rb"HTTP/1\.\d (\d{3})", self.wire.sent)
        if not status:
            return False
        connect = self.wire.received.startswith(b"CONNECT ") and status.group(1)[:1] == b"2"
        return connect or status.group(1) == b"101"


class Upstream:
    """Plays the `upstream_reply` scripts, and answers the plain GET after each case."""

    def __init__(self):
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(64)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.scripts = None
        self.connections = []
        self.clean = None  # (target, body) while the plain GET is on its way
        self.started = 0
        asyncio.get_running_loop().add_reader(self.listener, self._accept)

    def begin(self, scripts):
        self.scripts = scripts
        self.connections = []
        self.clean = None
        self.started = 0

    async def end(self):
        for connection in self.connections:
            if connection.task:
                connection.task.cancel()
            connection.wire.close()
        await asyncio.sleep(0)

    def close(self):
        asyncio.get_running_loop().remove_reader(self.listener)
        self.listener.close()

    def _accept(self):
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return
        connection = UpstreamConnection(Wire(sock, True), len(self.connections))
        self.connections.append(connection)
        connection.task = asyncio.get_running_loop().create_task(self._serve(connection))

    async def _serve(self, connection):
        if self.scripts is None:
            return
        if self.clean:
            if not await connection.wire.holds(b"\r\n\r\n") or self._is_clean(connection):
                return
        number = self.started
        self.started += 1
        if number < len(self.scripts):
            steps = self.scripts[number]
        else:
            if not await connection.wire.holds(b"\r\n\r\n"):
                return
            steps = self._rest_for(connection) or self.scripts[-1]
        if steps and steps[0][0] == "SEND" and not await connection.wire.holds(b"\r\n\r\n"):
            return
        await self._play(connection, steps)

    def _is_clean(self, connection):
        return self.clean is not None and self.clean[0] in connection.wire.received

    def _rest_for(self, late):
        for connection in self.connections:
            if connection.waits_for and connection.waits_for.lower() in late.wire.received.lower():
                connection.waits_for = None
                connection.task.cancel()
                return connection.rest
        return None

    async def _play(self, connection, steps):
        wire = connection.wire
        for position, (name, argument) in enumerate(steps):
            if name == "SEND":
                was_reading = wire.reading
                wire.pause()
                for block in blocks(argument):
                    if not await wire.send(block):
                        return
                if was_reading:
                    wire.resume()
            elif name == "READ":
                connection.waits_for, connection.rest = argument, steps[position + 1:]
                if not await wire.holds(argument):
                    return
                connection.waits_for = None
            elif name == "ECHO":
                await self._echo(wire)
            else:
                await wire.step(name, argument)

    @staticmethod
    async def _echo(wire):
        head_end = wire.received.find(b"\r\n\r\n") + 4
        at = head_end
        while not wire.ended and not wire.closed:
            if len(wire.received) > at:
                data = bytes(wire.received[at:])
                at += len(data)
                if not await wire.send(data):
                    return
            await asyncio.sleep(POLL_S)

    async def answer_clean(self):
        """Answers the plain GET on whatever connection it comes, except inside a tunnel."""
        while True:
            for connection in self.connections:
                if connection.answered_clean or connection.tunnel or connection.wire.closed:
                    continue
                target, body = self.clean
                at = connection.wire.received.find(target)
                if at < 0 or b"\r\n\r\n" not in connection.wire.received[at:]:
                    continue
                connection.answered_clean = True
                if connection.task:
                    connection.task.cancel()
                head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
                await connection.wire.send(head + body)
            await asyncio.sleep(POLL_S)

    @property
    def received(self):
        return b"".join(bytes(c.wire.received) for c in self.connections)
