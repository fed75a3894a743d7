"""Requests of Python's http.client through a forward proxy, all on one connection.

usage: http_client_session.py PROXY-HOST:PORT ORIGIN-URL

Prints one JSON object: what each answer was, and how many connections had been made by then.
"""

import hashlib
import http.client
import json
import sys


class CountedConnection(http.client.HTTPConnection):
    connects = 0

    def connect(self):
        super().connect()
        self.connects += 1


def summary(answer):
    body = answer.read()
    told = answer.getheader("Content-Type") == "application/json"
    return {
        "status": answer.status,
        "length": len(body),
        "arrived": json.loads(body)["body_sha256"] if told else None,
        "sha256": hashlib.sha256(body).hexdigest(),
        "content_length": answer.getheader("Content-Length"),
    }


def sent(body):
    return hashlib.sha256(body).hexdigest()


def pieces(body, size):
    for at in range(0, len(body), size):
        yield body[at:at + size]


def main(proxy, origin):
    connection = CountedConnection(proxy, timeout=20)
    body = bytes(range(256)) * 800
    calls = {}

    def add(name, **more):
        answer = connection.getresponse()
        calls[name] = summary(answer) | {"connects": connection.connects} | more

    connection.request("GET", origin + "/bytes/100000")
    add("get")

    connection.request("HEAD", origin + "/bytes/5000")
    add("head")

    connection.request("POST", origin + "/t/http-client", body=body)
    add("post", sent=sent(body))

    # Without a length http.client sends what an iterator gives as chunks.
    connection.request("POST", origin + "/t/http-client", body=pieces(body, 1000))
    add("chunked", sent=sent(body))

    connection.request("GET", origin + "/chunked?chunks=20&size=777")
    add("chunked_answer")

    connection.request("GET", origin + "/status/404")
    add("not_found")

    print(json.dumps(calls))


if __name__ == "__main__":
    main(*sys.argv[1:])
