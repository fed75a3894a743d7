"""A file over TLS by Python's http.client through a CONNECT tunnel.

usage: tls_tunnel.py PROXY-HOST:PORT HOST:PORT PATH AUTHORITIES-FILE

Prints one JSON object: status, length and digest of what came.
"""

import hashlib
import http.client
import json
import ssl
import sys


def main(proxy, target, path, authorities):
    context = ssl.create_default_context(cafile=authorities)
    connection = http.client.HTTPSConnection(proxy, timeout=20, context=context)
    connection.set_tunnel(target)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    print(json.dumps({
        "status": answer.status,
        "length": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
