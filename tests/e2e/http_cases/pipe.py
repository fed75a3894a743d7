#!/usr/bin/env python3
"""A plain TCP pipe with the command line of the gateway under test.

The runner must fail most cases on it: a case that nothing can fail proves nothing.
"""

import asyncio
import json
import signal
import sys


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def metrics(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    body = b"proxypool_gateway_active_requests 0\nproxypool_gateway_active_tunnels 0\n"
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
    writer.write(body)
    writer.close()


async def main():
    host, port = sys.argv[sys.argv.index("--proxy") + 1].split(":")[:2]

    async def pipe(reader, writer):
        try:
            up_reader, up_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, up_writer), copy(up_reader, writer))
        writer.close()
        up_writer.close()

    proxy = await asyncio.start_server(pipe, "127.0.0.1", 0)
    scrape = await asyncio.start_server(metrics, "127.0.0.1", 0)
    print(json.dumps({"proxy": proxy.sockets[0].getsockname()[1],
                      "metrics": scrape.sockets[0].getsockname()[1]}), flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


asyncio.run(main())
