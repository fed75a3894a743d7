#!/usr/bin/env python3
"""docs/metrics.md says what the three programs show: names, types and labels, in both directions.

  metrics_test.py PROGRAMS DOCUMENT
"""

import re
import sys

from cluster import ServingCluster, ask

SECTIONS = {"Every process", "Gateway", "Controller", "Checker"}


def documented(path):
    """section → {name: (type, labels)}"""
    found, section = {}, None
    for line in open(path, encoding="utf-8"):
        if line.startswith("## "):
            section = line[3:].strip()
            found[section] = {}
        if not line.startswith("| `"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 6:
            raise AssertionError(f"a row needs six cells: {line}")
        name, kind, labels = cells[0].strip("`"), cells[1], frozenset(re.findall(r"`(\w+)`", cells[2]))
        if name in found[section]:
            raise AssertionError(f"{name} stands twice")
        if not cells[3] or not cells[4]:
            raise AssertionError(f"{name} has no unit or no meaning")
        found[section][name] = (kind, labels)
    assert set(found) == SECTIONS, found.keys()
    return found


def shown(text):
    """{name: (type, labels)} of one scrape."""
    kinds, labels = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            kinds[name] = kind
        if line.startswith("#") or not line.strip():
            continue
        sample = re.match(r"(\w+)(?:\{(.*)\})? \S+$", line)
        if not sample:
            raise AssertionError(f"no sample: {line}")
        name = sample[1]
        for family, kind in kinds.items():
            if kind == "histogram" and re.fullmatch(family + "_(bucket|sum|count)", name):
                name = family
        own = set(re.findall(r'(\w+)="', sample[2] or ""))
        if kinds[name] == "histogram":
            own.discard("le")
        labels.setdefault(name, set()).add(frozenset(own))
    for name, sets in labels.items():
        if len(sets) != 1:
            raise AssertionError(f"{name} has several sets of labels: {sets}")
    return {name: (kind, next(iter(labels[name]))) for name, kind in kinds.items()}


def compare(program, wanted, got):
    problems = []
    for name in sorted(wanted.keys() | got.keys()):
        if name not in got:
            problems.append(f"{program}: {name} is in the document and not shown")
        elif name not in wanted:
            problems.append(f"{program}: {name} {got[name]} is shown and not in the document")
        elif wanted[name] != got[name]:
            problems.append(f"{program}: {name} is documented as {wanted[name]}, shown as {got[name]}")
    return problems


def value(text, pattern):
    return sum(float(number) for number in re.findall(rf"(?m)^{pattern} (\S+)$", text))


def main(programs, document):
    table = documented(document)
    with ServingCluster(programs) as cluster:
        for _ in range(3):
            assert cluster.status_of_request() == 200
        body = b'{"count": 1}'
        taken = ask(cluster.distribution, "POST", "/v1/extractions",
                    {"Content-Type": "application/json"}, body)
        assert taken.status == 200, taken.body
        texts = {}
        for program, process in (("Gateway", cluster.gateway), ("Controller", cluster.controller),
                                 ("Checker", cluster.checker)):
            answer = ask(process.port("metrics"), "GET", "/metrics")
            assert answer.status == 200 and answer.type == "text/plain", answer.status
            texts[program] = answer.body.decode()
        again = ask(cluster.admin, "GET", "/metrics")
        assert again.status == 200 and shown(again.body.decode()) == shown(texts["Controller"])

        problems = []
        for program, text in texts.items():
            wanted = {**table["Every process"], **table[program]}
            problems += compare(program, wanted, shown(text))
            for secret in ("fixture-password", "127.0.0.1", "192.0.2."):
                if secret in text:
                    problems.append(f"{program}: {secret} stands in a metric")
        # What happened is what is counted.
        for program, pattern, least in (
                ("Gateway", r'proxypool_gateway_requests_total\{outcome="ok"\}', 3),
                ("Gateway", r"proxypool_gateway_proxies", 1),
                ("Gateway", r"proxypool_snapshot_version", 1),
                ("Controller", r"proxypool_workers_live", 1),
                ("Controller", r"proxypool_checkers_connected", 1),
                ("Controller", r"proxypool_extraction_returned_total", 1),
                ("Controller", r'proxypool_fetches_total\{[^}]*class="success"[^}]*\}', 2),
                ("Checker", r'proxypool_checker_probes_total\{result="passed"\}', 12)):
            if value(texts[program], pattern) < least:
                problems.append(f"{program}: {pattern} is below {least}")
    if problems:
        sys.exit("\n".join(problems))
    print(f"{sum(len(rows) for rows in table.values())} metrics are as documented")


if __name__ == "__main__":
    main(*sys.argv[1:])
