#!/usr/bin/env python3
"""A plain TCP pipe in the gateway's place: pipe.py PORT-OF-THE-UPSTREAM.

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


async def main():
    port = int(sys.argv[1])

    async def pipe(reader, writer):
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, up_writer), copy(up_reader, writer))
        writer.close()
        up_writer.close()

    proxy = await asyncio.start_server(pipe, "127.0.0.1", 0)
    print(json.dumps({"proxy": proxy.sockets[0].getsockname()[1]}), flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


asyncio.run(main())
