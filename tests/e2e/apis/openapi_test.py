#!/usr/bin/env python3
"""The OpenAPI documents and docs/apis.md against running servers, in both directions.

Each documented status of each operation is provoked, each answer is compared with its schema, and
nothing may be answered that is not documented. The few that cannot be provoked are named here.

  openapi_test.py PROGRAMS SOURCES
"""

import base64
import json
import os
import re
import shlex
import socket
import subprocess
import sys

import jsonschema

from cluster import Cluster, ServingCluster, ask, controller_settings, eventually
from openapi import Document

# The embedded stores always answer, and a controller is ready before it can be asked.
OUT_OF_REACH = {
    "distribution": {("/readyz", "get", 503)},
    "admin": {("/readyz", "get", 503), ("/v1/status", "get", 503), ("/v1/workers", "get", 503),
              ("/v1/workers/{id}", "get", 503), ("/v1/checkers", "get", 503),
              ("/v1/clients/{name}/usage", "get", 503), ("/v1/proxies", "get", 503), ("/v1/proxies/{id}", "get", 503),
              ("/v1/routings/{id}", "get", 503),
              # Writers that come first again and again, and a store that is away.
              *(("/v1/routings/{id}:" + verb, "post", status)
                for verb in ("switch", "enable", "disable") for status in (409, 503))},
}
# Properties that nothing here brings about: a pool of more than a thousand proxies, a refusal to start.
NEVER_THERE = {
    "distribution": {("Extraction", "scanLimited"), ("NotReady", "status"), ("NotReady", "reasons"),
                     ("NotReady", "warnings"), ("Ready", "warnings")},
    "admin": {("NotReady", "status"), ("NotReady", "reasons"), ("NotReady", "warnings"),
              ("Ready", "warnings")},
}
PROBLEM = "application/problem+json"
JSON = {"Content-Type": "application/json"}
MIB = 1024 * 1024


class Api:
    """One document and the ports of the servers that answer for it."""

    def __init__(self, name, document):
        self.name, self.document = name, document
        self.wrong = []

    def expect(self, condition, what):
        if not condition:
            self.wrong.append(f"{self.name}: {what}")

    def call(self, port, method, path, status, template=None, headers=None, body=None, code=None):
        """A request that the document knows. `template` is the documented path."""
        answer = ask(port, method.upper(), path, headers, body)
        template = template or path.split("?")[0]
        what = f"{method.upper()} {path} → {answer.status}"
        self.expect(answer.status == status, f"{what}, not {status}: {answer.body[:300]!r}")
        self.wrong += [f"{self.name}: {line}"
                       for line in self.document.problems(template, method, answer)]
        self.check_common(answer, what, code)
        return answer

    def stray(self, port, method, path, status, headers=None, body=None):
        """A request that no operation is made for: a problem all the same."""
        answer = ask(port, method, path, headers, body)
        what = f"{method} {path} → {answer.status}"
        self.expect(answer.status == status, f"{what}, not {status}")
        self.expect(method == "HEAD" or answer.type == PROBLEM, f"{what} is {answer.type}")
        self.check_common(answer, what)
        return answer

    def check_common(self, answer, what, code=None):
        self.expect(re.fullmatch(r"[A-Za-z0-9._-]{1,128}", answer.headers["X-Request-Id"] or ""),
                    f"{what} has no request id")
        if answer.type != PROBLEM or not answer.body:
            return
        problem = answer.json()
        self.expect(problem.get("status") == answer.status, f"{what} says {problem.get('status')}")
        self.expect(problem.get("requestId") == answer.headers["X-Request-Id"],
                    f"{what} names another request: {problem}")
        if code:
            self.expect(problem.get("code") == code, f"{what} is {problem.get('code')}, not {code}")

    def everywhere(self, port):
        """The rules that hold at every path."""
        self.call(port, "get", "/livez", 200)
        self.call(port, "get", "/readyz", 200)
        served = self.call(port, "get", "/openapi.yaml", 200)
        self.expect(served.body.decode() == self.document.text, "another document is served")
        self.stray(port, "GET", "/v1/nothing", 404)
        self.stray(port, "GET", "/v1/../v1/nothing", 400)
        wrong = self.stray(port, "DELETE", "/livez", 405)
        self.expect(wrong.headers["Allow"] == "GET, HEAD, OPTIONS", f"Allow: {wrong.headers['Allow']}")
        head = ask(port, "HEAD", "/livez")
        self.expect(head.status == 200 and not head.body, "HEAD /livez is not GET without a body")
        options = ask(port, "OPTIONS", "/livez")
        self.expect(options.status == 204 and options.headers["Allow"] == "GET, HEAD, OPTIONS",
                    f"OPTIONS /livez: {options.status} {options.headers['Allow']}")
        named = ask(port, "GET", "/livez", {"X-Request-Id": "mine-1.2_3"})
        self.expect(named.headers["X-Request-Id"] == "mine-1.2_3", "the request's id is not taken")
        odd = ask(port, "GET", "/livez", {"X-Request-Id": "not / mine"})
        self.expect(odd.headers["X-Request-Id"] != "not / mine", "any request id is taken")
        large = self.stray(port, "POST", "/livez", 413, {"X-Request-Id": "large"}, b" " * (MIB + 1))
        self.expect(large.headers["X-Request-Id"] == "large", "a refused request loses its id")
        garbage = raw(port, b"GET\x01/ HTTP/1.1\r\nHost: x\r\n\r\n")
        self.expect(garbage.startswith(b"HTTP/1.1 400 ") and PROBLEM.encode() in garbage,
                    f"garbage is answered with {garbage[:100]!r}")

    def report(self):
        promised = self.document.operations() - OUT_OF_REACH[self.name]
        for operation in sorted(promised - self.document.seen):
            self.wrong.append(f"{self.name}: {operation} is documented and was not provoked")
        for operation in sorted(OUT_OF_REACH[self.name] & self.document.seen):
            self.wrong.append(f"{self.name}: {operation} can be provoked after all")
        missing = self.document.described() - self.document.properties - NEVER_THERE[self.name]
        for schema, key in sorted(missing):
            self.wrong.append(f"{self.name}: {schema} describes '{key}', which never came")
        return self.wrong


def raw(port, sent):
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


def extraction(api, port, status, body, query="", headers=None, code=None):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return api.call(port, "post", "/v1/extractions" + query, status, "/v1/extractions",
                    {**JSON, **(headers or {})}, data, code)


def preview(api, port, status, query="", headers=None, code=None):
    return api.call(port, "get", "/v1/extractions/preview" + query, status,
                    "/v1/extractions/preview", headers, code=code)


def use_distribution(api, port):
    api.everywhere(port)
    everything = {"count": 2, "fulfillment": "allOrNothing", "filters": {
        "protocols": ["http"], "countries": ["us", "DE", "JP", "GB", "BR", "FR", "CA", "AU", "IN"],
        "regions": [], "cities": [], "carriers": [], "upstreams": ["vendor"], "tags": {},
        "minRemainingTtlSeconds": 60, "maxHealthCheckAgeSeconds": 120}}
    taken = extraction(api, port, 200, {"count": 2, "filters": {"upstreams": ["vendor"]}})
    api.expect(taken.json()["returned"] == 2, f"two were not given: {taken.body!r}")
    for proxy in taken.json()["proxies"]:
        for key in ("username", "password", "host"):
            api.expect(proxy[key] in proxy["url"], f"{key} is not in the url of {proxy}")
    api.expect(extraction(api, port, 200, {"count": 1, "filters": {"upstreams": ["list"]}}).json()
               ["returned"] == 1, "the list gave nothing")
    lines = extraction(api, port, 200, {"count": 1}, "?format=url")
    api.expect(re.fullmatch(rb"http://[^/\n]+\n", lines.body), f"no line: {lines.body!r}")
    extraction(api, port, 200, {"count": 1}, "", {"Accept": "text/plain"})
    extraction(api, port, 400, {"count": 1}, "?format=xml", code="validation_failed")
    extraction(api, port, 400, b"{", code="not_json")
    extraction(api, port, 400, {"count": 1, "cuont": 1}, code="validation_failed")
    short = extraction(api, port, 409, {"count": 90, "fulfillment": "allOrNothing"},
                       code="insufficient_inventory")
    api.expect(short.json()["available"] < 90, "nothing says how many would do")
    extraction(api, port, 413, b" " * (MIB + 1))
    extraction(api, port, 415, b"count=1", "", {"Content-Type": "application/x-www-form-urlencoded"},
               "unsupported_media_type")
    extraction(api, port, 422, {"count": 1000}, code="count_too_large")
    preview(api, port, 200, "?count=5&protocols=http&countries=us,de&tags=tier:gold&upstreams=list"
            "&regions=&cities=&carriers=&minRemainingTtlSeconds=1&maxHealthCheckAgeSeconds=60")
    api.expect(preview(api, port, 200).json()["available"] == 1, "nothing is left to preview")
    preview(api, port, 400, "?count=many", code="validation_failed")
    preview(api, port, 422, "?count=1000", code="count_too_large")
    agree_on_requests(api, port, everything)


def agree_on_requests(api, port, everything):
    """What the schema of the request forbids is refused, and what it allows is not."""
    schema = api.document.request_schema("/v1/extractions", "post")
    validator = jsonschema.Draft202012Validator(schema)
    samples = [everything, {}, [], {"count": 0}, {"count": -1}, {"count": 1.5}, {"count": "1"},
               {"count": 1, "fulfillment": "some"}, {"count": 1, "filters": []},
               {"count": 1, "filters": {"protocols": ["ftp"]}},
               {"count": 1, "filters": {"protocols": "http"}},
               {"count": 1, "filters": {"countries": ["USA"]}},
               {"count": 1, "filters": {"countries": ["1!"]}},
               {"count": 1, "filters": {"regions": [1]}},
               {"count": 1, "filters": {"regions": ["x"] * 101}},
               {"count": 1, "filters": {"cities": ["fresno"], "carriers": ["x"]}},
               {"count": 1, "filters": {"tags": {"a": 1}}},
               {"count": 1, "filters": {"tags": {str(i): "x" for i in range(17)}}},
               {"count": 1, "filters": {"tags": {"tier": "gold"}}},
               {"count": 1, "filters": {"minRemainingTtlSeconds": -1}},
               {"count": 1, "filters": {"minRemainingTtlSeconds": 316224001}},
               {"count": 1, "filters": {"maxHealthCheckAgeSeconds": 0}},
               {"count": 1, "filters": {"age": 1}}]
    for sample in samples:
        answer = ask(port, "POST", "/v1/extractions", JSON, json.dumps(sample).encode())
        api.wrong += [f"{api.name}: {line}"
                      for line in api.document.problems("/v1/extractions", "post", answer)]
        allowed = not list(validator.iter_errors(sample))
        api.expect(allowed == (answer.status != 400),
                   f"the schema {'allows' if allowed else 'forbids'} {json.dumps(sample)[:80]}, "
                   f"the server answers {answer.status}")


def use_admin(api, port, cluster):
    api.everywhere(port)
    cluster.fail_one()
    status = api.call(port, "get", "/v1/status", 200).json()
    api.call(port, "get", "/metrics", 200)
    ids = {"upstreams": "vendor", "routings": "everything", "workers": status["workers"][0]["id"]}
    for name, known in ids.items():
        api.call(port, "get", f"/v1/{name}", 200)
        api.call(port, "get", f"/v1/{name}?limit=0", 400, code="validation_failed")
        api.call(port, "get", f"/v1/{name}/{known}", 200, f"/v1/{name}/{{id}}")
        api.call(port, "get", f"/v1/{name}/nobody", 404, f"/v1/{name}/{{id}}", code="not_found")
    for name in ("upstreams", "routings"):
        first = api.call(port, "get", f"/v1/{name}?limit=1", 200).json()
        api.call(port, "get", f"/v1/{name}?limit=1&cursor={first['nextCursor']}", 200)
    cluster.start_second_peers()
    for name in ("workers", "checkers"):
        eventually(lambda: "nextCursor" in ask(port, "GET", f"/v1/{name}?limit=1").json(),
                   f"there are two {name}")
        api.call(port, "get", f"/v1/{name}?limit=1", 200)
    api.call(port, "get", "/v1/checkers?limit=many", 400, code="validation_failed")
    page = api.call(port, "get", "/v1/proxies?limit=10&state=available,suspect,extracted", 200).json()
    api.call(port, "get", "/v1/proxies?limit=1000&upstream=vendor", 200)
    api.call(port, "get", f"/v1/proxies?cursor={page['nextCursor']}", 200)
    api.call(port, "get", "/v1/proxies?state=happy", 400, code="validation_failed")
    api.call(port, "get", f"/v1/proxies/{page['items'][0]['id']}", 200, "/v1/proxies/{id}")
    api.call(port, "get", "/v1/proxies/0000000000000000", 404, "/v1/proxies/{id}", code="not_found")
    eventually(lambda: ask(port, "GET", "/v1/clients/crawler/usage").json()["days"],
               "what the crawler moved was reported")
    usage = api.call(port, "get", "/v1/clients/crawler/usage", 200, "/v1/clients/{name}/usage").json()
    api.expect(usage["bytes"] == usage["bytesUp"] + usage["bytesDown"] > 0, f"moved nothing: {usage}")
    api.call(port, "get", "/v1/clients/nobody/usage", 404, "/v1/clients/{name}/usage",
             code="not_found")
    operate(api, port)
    reconfigure(api, port, cluster)
    # Without a token: no other name, no foreign page.
    for template, methods in api.document.root["paths"].items():
        if template in ("/livez", "/readyz", "/openapi.yaml"):
            continue
        path = re.sub(r"\{\w+\}", "x", template)
        method = next(iter(methods))
        refused = [({"Host": "rebound.example"}, "foreign_host"),
                   ({"Sec-Fetch-Site": "cross-site"}, "foreign_page"),
                   ({"Origin": "http://rebound.example"}, "foreign_page")]
        if method == "post":
            refused.append(({}, "requested_by_missing"))
        for headers, code in refused:
            api.call(port, method, path, 403, template, headers, code=code)


MEANT = {"X-Requested-By": "test"}


def operate(api, port):
    """A sequential routing is moved, switched off and on."""
    def post(verb, status, routing="in-turn", headers=None, body=None, code=None):
        return api.call(port, "post", f"/v1/routings/{routing}:{verb}", status,
                        f"/v1/routings/{{id}}:{verb}", {**MEANT, **(headers or {})}, body, code)

    def switch(status, body, routing="in-turn", headers=None, code=None):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return post("switch", status, routing, {**JSON, **(headers or {})}, data, code)

    template = "/v1/routings/{id}"
    seen = api.call(port, "get", "/v1/routings/in-turn", 200, template)
    api.expect(seen.json()["current"] == "vendor", f"it begins at {seen.json()}")
    moved = switch(200, {"to": "list"}, headers={"If-Match": seen.headers["ETag"]})
    api.expect(moved.json()["current"] == "list", f"it was not moved: {moved.body!r}")
    switch(412, {"to": "vendor"}, headers={"If-Match": seen.headers["ETag"]}, code="stale")
    switch(400, {"to": "vendor"}, headers={"If-Match": "yesterday"}, code="bad_request")
    switch(400, {"to": "nowhere"}, code="bad_request")
    switch(400, {"to": "list"}, routing="everything", code="bad_request")
    switch(404, {"to": "list"}, routing="nobody", code="not_found")
    switch(413, b" " * (MIB + 1))
    post("switch", 415, headers={"Content-Type": "text/plain"}, body=b"list")
    for verb in ("disable", "enable"):
        done = post(verb, 200)
        api.expect(done.json()["enabled"] == (verb == "enable"), f"{verb}: {done.body!r}")
        post(verb, 400, headers={"If-Match": "yesterday"}, code="bad_request")
        post(verb, 404, routing="nobody", code="not_found")
        post(verb, 412, headers={"If-Match": seen.headers["ETag"]}, code="stale")
    history = api.call(port, "get", "/v1/routings/in-turn", 200, template).json()["history"]
    api.expect([entry["action"] for entry in history] ==
               ["routing.enable", "routing.disable", "routing.switch"], f"history: {history}")
    schema = api.document.request_schema("/v1/routings/{id}:switch", "post")
    validator = jsonschema.Draft202012Validator(schema)
    for sample in ({"to": "vendor"}, {}, [], {"to": 1}, {"to": "list", "from": "vendor"}):
        allowed = not list(validator.iter_errors(sample))
        switch(200 if allowed else 400, sample)


def reconfigure(api, port, cluster):
    """The configuration is read again: the same, one with mistakes, another one."""
    def post(verb, status, code=None):
        return api.call(port, "post", f"/v1/config:{verb}", status, headers=MEANT, code=code)

    before = api.call(port, "get", "/v1/config", 200).json()
    api.expect(post("reload", 200).json()["outcome"] == "unchanged", "the same file is another one")
    cluster.reconfigure({"whatever": 1, "check": {"basic": {"interval": 5}}})
    for verb in ("validate", "reload"):
        problem = post(verb, 422, "config_invalid").json()
        api.expect(len(problem["errors"]) == 2, f"errors: {problem}")
    api.expect(len(api.call(port, "get", "/v1/config", 200).json()["rejected"]) == 2,
               "nothing says what was wrong")
    clients = [*cluster.settings["clients"], {"name": "another"}]
    upstreams = [*cluster.settings["upstreams"],
                 {"id": "new", "enabled": False, "extraction": {"extractable": False},
                  "provider": {"type": "static", "proxies": ["192.0.2.7:80"]}}]
    cluster.reconfigure({"clients": clients, "upstreams": upstreams,
                         "cluster": {"strict": False}, "observability": {"logFormat": "json"}})
    api.expect(post("validate", 200).json()["outcome"] == "valid", "a trial")
    taken = post("reload", 200).json()
    api.expect(taken["outcome"] == "applied" and taken["revision"] == before["revision"] + 1,
               f"taken: {taken}")
    api.expect(taken["changes"]["clients"]["added"] == ["another"] and taken["warnings"]
               and taken["restart"] == [{"key": "observability.logFormat",
                                         "restart": "every program"}], f"taken: {taken}")
    api.call(port, "get", "/v1/config", 200)


class ClusterUnderTest(ServingCluster):
    def fail_one(self):
        """One proxy of the list fails its check, so that a failure is there to be shown."""
        def listed():
            return ask(self.admin, "GET", "/v1/proxies?upstream=list").json()["items"]
        # One that a gateway owns: nobody takes it out of the pool meanwhile.
        port = next(proxy["port"] for proxy in listed() if "owner" in proxy)
        index = next(proxy["index"] for proxy in self.list["proxies"] if proxy["port"] == port)
        ask(self.list["vendor"]["port"], "POST", f"/control/fault?proxy={index}&kind=refuse")
        eventually(lambda: any("lastFailure" in proxy for proxy in listed()), "a proxy has failed")

    def start_second_peers(self):
        self.second = [self.start_gateway(self.gateway_settings, self.control_port),
                       self.start_checker(self.control_port)]

    def lose_a_gateway(self, api):
        """What it may still use is shown until its tunnels must have ended."""
        eventually(lambda: len({proxy.get("owner") for proxy in self.proxies(api)} - {None}) == 2,
                   "both gateways own proxies")
        self.second[0].kill()
        eventually(lambda: any("orphanedUntil" in proxy for proxy in self.proxies(api)),
                   "proxies of the lost gateway are shown")

    def proxies(self, api):
        return api.call(self.admin, "get", "/v1/proxies?limit=1000", 200).json()["items"]

    def start_again_without_gateways(self):
        """A controller that knows that somebody may still serve, and whom nobody tells."""
        for program in (self.gateway, *self.second, self.controller):
            program.kill()
        self.controller = self.start_controller(self.settings)
        self.distribution = self.controller.port("distribution")


def guarded(cluster):
    """A controller whose callers must name themselves."""
    (cluster.folder / "token").write_text("read-token-of-the-test")
    (cluster.folder / "secret").write_text("secret-of-the-exporter")
    return cluster.start_controller(controller_settings(
        storage={"stateDir": "guarded"},
        distribution={"auth": {"mode": "usernamePassword"}},
        admin={"auth": {"readToken": {"file": "token"}}},
        clients=[{"name": "exporter", "credentials": {"distribution": {"file": "secret"}},
                  "allowedUpstreams": ["own"]}],
        upstreams=[{"id": name, "provider": {"type": "static", "proxies": [f"192.0.2.{n}:80"]},
                    "extraction": {"extractable": True}} for n, name in ((1, "own"), (2, "other"))],
        routings=[{"id": "all", "upstreams": [{"id": "own"}]}]))


def basic(name, secret):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


def use_guarded(distribution, admin, controller):
    port = controller.port("distribution")
    known = basic("exporter", "secret-of-the-exporter")
    extraction(distribution, port, 200, {"count": 1}, headers=known)
    foreign = {"count": 1, "filters": {"upstreams": ["other"]}}
    extraction(distribution, port, 403, foreign, headers=known, code="forbidden")
    preview(distribution, port, 403, "?upstreams=other", known, "forbidden")
    for headers in ({}, basic("exporter", "wrong"), basic("nobody", "secret-of-the-exporter")):
        for answer in (extraction(distribution, port, 401, {"count": 1}, headers=headers),
                       preview(distribution, port, 401, "", headers)):
            distribution.expect((answer.headers["WWW-Authenticate"] or "").startswith("Basic "),
                                "401 without a challenge")
    port = controller.port("admin")
    token = {"Authorization": "Bearer read-token-of-the-test"}
    for template, methods in admin.document.root["paths"].items():
        path = re.sub(r"\{\w+\}", "own", template)
        method = next(iter(methods))
        if template in ("/livez", "/readyz", "/openapi.yaml"):
            admin.call(port, "get", path, 200, template)
            continue
        for headers in ({}, {"Authorization": "Bearer wrong"}, known):
            answer = admin.call(port, method, path, 401, template, headers)
            admin.expect((answer.headers["WWW-Authenticate"] or "").startswith("Bearer "),
                         "401 without a challenge")
        if method == "post":  # this token may read
            admin.call(port, method, path, 403, template, token, code="forbidden")
            continue
        status = ask(port, "GET", path, token).status
        admin.expect(status in (200, 404), f"GET {path} with the token is {status}")


def curl_lines(path):
    """The commands of the document's shell blocks."""
    text = open(path, encoding="utf-8").read()
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        yield from (line for line in block.replace("\\\n", " ").splitlines() if line.strip())


def use_document(path, cluster):
    wrong, count = [], 0
    for line in curl_lines(path):
        count += 1
        command = line.replace("127.0.0.1:8081", f"127.0.0.1:{cluster.distribution}")
        command = command.replace("127.0.0.1:8082", f"127.0.0.1:{cluster.admin}")
        if not command.startswith("curl -fsS ") or "127.0.0.1:808" in command:
            wrong.append(f"docs/apis.md: not a line that can be tried: {line}")
            continue
        done = subprocess.run(shlex.split(command), capture_output=True, timeout=60, check=False)
        if done.returncode != 0 or not done.stdout:
            wrong.append(f"docs/apis.md: {line}\n  ends with {done.returncode}: {done.stderr.decode()}")
    if count < 5:
        wrong.append("docs/apis.md shows hardly a command")
    return wrong


def main(programs, sources):
    folder = os.path.join(sources, "api", "openapi")
    distribution = Api("distribution", Document(os.path.join(folder, "distribution.v1.yaml")))
    admin = Api("admin", Document(os.path.join(folder, "admin.v1.yaml")))
    with Cluster(programs) as alone:
        use_guarded(distribution, admin, guarded(alone))
    with ClusterUnderTest(programs) as cluster:
        wrong = use_document(os.path.join(sources, "docs", "apis.md"), cluster)
        use_admin(admin, cluster.admin, cluster)
        cluster.lose_a_gateway(admin)
        use_distribution(distribution, cluster.distribution)
        cluster.start_again_without_gateways()
        extraction(distribution, cluster.distribution, 503, {"count": 1}, code="not_ready")
        preview(distribution, cluster.distribution, 503, code="not_ready")
    wrong += distribution.report() + admin.report()
    if wrong:
        sys.exit("\n".join(dict.fromkeys(wrong)))
    print(f"{len(distribution.document.seen) + len(admin.document.seen)} answers are as documented")


if __name__ == "__main__":
    main(*sys.argv[1:])
