#!/usr/bin/env python3
"""Sends one request through the gateway, and says how it was answered and which proxy served it.

    request.py GATEWAY URL LOG ADMIN

GATEWAY and ADMIN are address:port, LOG is what the gateway writes: the line of its access log names
the proxy, and the Admin API where that is. PROXY_USER=NAME:PASSWORD in the environment are the
credentials for the gateway. Ends with 0 after an answer of 2xx or 3xx, and with 1 and the reason
otherwise.
"""
import base64
import http.client
import json
import os
import re
import sys
import time
import urllib.parse
import urllib.request

PATIENCE_SECONDS = 20
LINE_SECONDS = 3
SHOWN_BYTES = 2000


def served_by(log, behind, target):
    """The id of the proxy in the first new line of the access log for this host; None without one."""
    until = time.monotonic() + LINE_SECONDS
    while time.monotonic() < until:
        with open(log, errors="replace") as lines:
            lines.seek(behind)
            for line in lines:
                found = re.search(r"\bproxy\"?[=:]\"?([0-9a-f]{16})\b", line)
                if found and "request_served" in line and target in line:
                    return found[1]
        time.sleep(0.05)
    return None


def place_of(admin, proxy):
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                f"http://{admin}/v1/proxies/{proxy}", timeout=PATIENCE_SECONDS) as answer:
            known = json.load(answer)
        return f"{known['host']}:{known['port']}"
    except (OSError, ValueError, KeyError):
        return f"{proxy} (the Admin API says where that is)"


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


def main(gateway, url, log, admin):
    behind = os.path.getsize(log)
    parts = urllib.parse.urlsplit(url)
    target = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    try:
        connection, answer = send(gateway, url)
        body = answer.read(SHOWN_BYTES).decode(errors="replace")
    except (OSError, ValueError, http.client.HTTPException) as failure:
        sys.exit(f"run.sh: {url} was not answered: {failure}")
    answer.close()
    connection.close()  # a tunnel gets its line when it ends
    print(f"==> Answer:   {answer.status}")
    for line in body.splitlines():
        print("    " + line)
    if not 200 <= answer.status < 400:
        sys.exit(f"run.sh: {url} was answered with status {answer.status}; see above")
    proxy = served_by(log, behind, target)
    if proxy:
        print(f"==> Served by the proxy at {place_of(admin, proxy)}, as the gateway's log says")
    else:
        print("==> The gateway's log does not say by which proxy; set gateway.accessLog.oneIn to 1")


if __name__ == "__main__":
    main(*sys.argv[1:])
