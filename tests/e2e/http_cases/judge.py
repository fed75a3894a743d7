"""What the two ends saw, held against what a case expects."""

import re
import time

QUIET_S = 0.3


class Message:
    """One answer, or one request, cut out of a byte stream."""

    def __init__(self, first, rest, head):
        self.first, self.second = first, rest  # status and reason, or method and target
        self.head = head
        self.interim = False
        self.complete = False
        self.until_close = False
        self.tunnel = False

    def field(self, name):
        values = re.findall(rb"(?im)^" + name + rb":[ \t]*([^\r\n]*)", self.head)
        return values[0].strip() if values else None


def _chunks_end(data, at):
    """Where a chunked body ends; None while it does not, -1 when it is malformed."""
    while True:
        line_end = data.find(b"\r\n", at)
        if line_end < 0:
            return None
        size = re.fullmatch(rb"([0-9A-Fa-f]{1,16})[ \t]*(;[^\r\n]*)?", data[at:line_end])
        if not size:
            return -1
        length = int(size.group(1), 16)
        at = line_end + 2
        if length == 0:
            while True:  # trailers
                line_end = data.find(b"\r\n", at)
                if line_end < 0:
                    return None
                if line_end == at:
                    return at + 2
                at = line_end + 2
        if len(data) < at + length + 2:
            return None
        at += length + 2


def _body(message, data, at):
    """Sets how the message ends and returns where the next one begins."""
    if (message.field(rb"transfer-encoding") or b"").lower() == b"chunked":
        end = _chunks_end(data, at)
        message.complete = end is not None and end >= 0
        return end if message.complete else len(data)
    length = message.field(rb"content-length")
    if length is not None and length.isdigit():
        message.complete = len(data) >= at + int(length)
        return min(len(data), at + int(length))
    return None


def answers(data, methods):
    """The answers in what a client connection received; `methods` are those of its requests."""
    found, at, index = [], 0, 0
    while True:
        head_end = data.find(b"\r\n\r\n", at)
        if head_end < 0:
            return found
        head = data[at:head_end + 2]
        status = re.match(rb"HTTP/1\.[01] (\d{3})(?: |\r)", head)
        if not status:
            return found
        answer = Message(int(status.group(1)), b"", head)
        found.append(answer)
        at = head_end + 4
        if 100 <= answer.first < 200 and answer.first != 101:
            answer.interim = answer.complete = True
            continue
        method = methods[index] if index < len(methods) else b"GET"
        index += 1
        if answer.first == 101 or (method == b"CONNECT" and 200 <= answer.first < 300):
            answer.complete = answer.tunnel = True
            return found
        if method == b"HEAD" or answer.first in (204, 304):
            answer.complete = True
            continue
        end = _body(answer, data, at)
        if end is None:
            answer.until_close = True
            return found
        at = end


def requests(data):
    """The requests at the start of a byte stream: what a strict parser makes of it."""
    found, at = [], 0
    while True:
        head_end = data.find(b"\r\n\r\n", at)
        if head_end < 0:
            return found
        head = data[at:head_end + 2]
        line = re.match(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([^ \r\n]+) HTTP/1\.[01]\r\n", head)
        if not line:
            return found
        request = Message(line.group(1), line.group(2), head)
        found.append(request)
        at = head_end + 4
        if request.first == b"CONNECT":
            request.complete = request.tunnel = True
            return found
        end = _body(request, data, at)
        if end is None:
            request.complete = True
        else:
            at = end
            if not request.complete:
                return found


def final_answers(client):
    found = []
    for wire in client.wires:
        methods = [r.first for r in requests(bytes(wire.sent))]
        found += [a for a in answers(bytes(wire.received), methods) if not a.interim]
    return found


def whole_answers(wire):
    asked = requests(bytes(wire.sent))
    got = [a for a in answers(bytes(wire.received), [r.first for r in asked]) if not a.interim]
    return (bool(asked) and len(got) == len(asked) and all(r.complete for r in asked)
            and all(a.complete or a.until_close for a in got))


def squeezed(data):
    """Blanks behind a field's colon do not count, nor the case of its name."""
    return re.sub(rb"(?m)^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*",
                  lambda m: m.group(1).lower() + b":", data)


def holds(data, text):
    text = text.encode("latin-1")
    return text in data or squeezed(text) in squeezed(data)


def count(data, text):
    raw = text.encode("latin-1")
    if raw == raw.lower():
        return data.lower().count(raw)
    return max(data.count(raw), squeezed(data).count(squeezed(raw)))


class Judge:
    def __init__(self, expect, client, upstream, direct=False):
        self.expect, self.client, self.upstream = expect, client, upstream
        self.direct = direct

    def positive(self):
        """The demands that time can still meet, as a list of complaints."""
        expect, bad = self.expect, []
        got, seen = self.client.received, self.upstream.received
        finals = final_answers(self.client)
        closed = all(w.ended or w.closed for w in self.client.wires) and self.client.wires
        if "status" in expect and (not finals or finals[0].first not in expect["status"]):
            bad.append(f"status {finals[0].first if finals else 'none'}, not {expect['status']}")
        if "status_last" in expect and (not finals or finals[-1].first not in
                                        expect["status_last"]):
            bad.append(f"last status is not in {expect['status_last']}")
        if "status_or_close" in expect:
            answered = finals and finals[0].first in expect["status_or_close"]
            if not answered and (finals or not closed):
                bad.append("no such status, and not closed")
        for text in expect.get("must_contain", []):
            if not holds(got, text) and not self._excused(finals):
                bad.append(f"the client misses {text!r}")
        for text in expect.get("must_contain_ci", []):
            if text.lower().encode("latin-1") not in got.lower():
                bad.append(f"the client misses {text!r}")
        for text in expect.get("upstream_must_contain", []):
            if not holds(seen, text):
                bad.append(f"the upstream misses {text!r}")
        for pattern in expect.get("upstream_must_match", []):
            if not re.search(pattern.encode("latin-1"), seen):
                bad.append(f"the upstream misses /{pattern}/")
        for text, least in expect.get("upstream_min_occurrences", {}).items():
            if count(seen, text) < least and not self._excused(finals):
                bad.append(f"the upstream got {text!r} {count(seen, text)} times, not {least}")
        if expect.get("connection_closed") and not closed:
            bad.append("the client connection is open")
        if expect.get("self_delimited_or_closed") and not closed and not (
                finals and finals[0].complete):
            bad.append("the first answer has no end")
        if "client_bytes_accepted_max" in expect and not self._held_back():
            bad.append("the client is not held back")
        if "upstream_closed_within_s" in expect and not all(
                c.wire.ended or c.wire.closed for c in self.upstream.connections):
            bad.append("an upstream connection is open")
        return bad

    def negative(self):
        """The demands that nothing may break, as a list of complaints."""
        expect, bad = self.expect, []
        got, seen = self.client.received, self.upstream.received
        for text in expect.get("must_not_contain", []):
            if holds(got, text):
                bad.append(f"the client got {text!r}")
        for pattern in expect.get("upstream_must_not_match", []):
            if re.search(pattern.encode("latin-1"), seen):
                bad.append(f"the upstream got /{pattern}/")
        forbidden = expect.get("must_not_reach_upstream", [])
        if forbidden is True:
            if self._case_bytes(seen):
                bad.append(f"the upstream got {bytes(seen[:60])!r}")
            if self.direct and any(not c.answered_clean for c in self.upstream.connections):
                bad.append("a connection to an origin")
        else:
            bad += [f"the upstream got {t!r}" for t in forbidden if holds(seen, t)]
        for text, most in expect.get("upstream_max_occurrences", {}).items():
            if count(self._case_bytes(seen), text) > most:
                bad.append(f"the upstream got {text!r} more than {most} times")
        for connection in self.upstream.connections:
            data = bytes(connection.wire.received)
            for text, most in expect.get("upstream_max_per_connection", {}).items():
                if count(data, text) > most:
                    bad.append(f"a connection got {text!r} more than {most} times")
            for target in expect.get("upstream_no_request_for", []):
                if any(target.encode() in r.second for r in requests(data)):
                    bad.append(f"a request for {target} reached the upstream")
        if "client_bytes_accepted_max" in expect:
            accepted = sum(w.accepted for w in self.client.wires)
            if accepted > expect["client_bytes_accepted_max"]:
                bad.append(f"the client could write {accepted} bytes")
            if any(w.ended for w in self.client.wires):
                bad.append("the client was cut off")
        return bad

    def _case_bytes(self, seen):
        """Without the plain GET that follows each case."""
        if not self.upstream.clean:
            return seen
        target = re.escape(self.upstream.clean[0])
        return re.sub(rb"GET [^\r\n]*" + target + rb".*?\r\n\r\n", b"", seen, flags=re.S)

    def _excused(self, finals):
        """`or_closed`: later answers may be missing after an orderly end."""
        return (self.expect.get("or_closed") and finals and finals[0].complete
                and all(w.eof and w.error is None for w in self.client.wires))

    def _held_back(self):
        wire = self.client.wires[-1] if self.client.wires else None
        return wire and wire.blocked_since and time.monotonic() - wire.blocked_since >= 1

    def last_sign(self):
        """When anything last moved on either side."""
        wires = self.client.wires + [c.wire for c in self.upstream.connections]
        return max([max(w.last_act, w.ended_at) for w in wires], default=0)
