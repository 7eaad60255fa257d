"""aioquic as a peer of the example `http3` of glommio-h3: `serve` or `ask`."""

import asyncio
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, StreamReset

LENGTH = 5_000_000


def pattern(length):
    return bytes((index * 31 + index // 251) & 0xFF for index in range(length))


class Server(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = None
        self.requests = {}

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if self.http is None:
            return
        for event in self.http.handle_event(event):
            if isinstance(event, HeadersReceived):
                self.requests[event.stream_id] = (dict(event.headers), bytearray())
            elif isinstance(event, DataReceived):
                self.requests[event.stream_id][1].extend(event.data)
            else:
                continue
            if event.stream_ended:
                self.answer(event.stream_id)

    def answer(self, stream):
        headers, body = self.requests.pop(stream)
        path = headers[b":path"].decode()
        if path == "/slow":
            return
        if path.startswith("/bytes/"):
            body = pattern(int(path.removeprefix("/bytes/")))
        self.http.send_headers(stream, [(b":status", b"200")])
        self.http.send_data(stream, bytes(body), end_stream=True)
        self.transmit()


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.answers = {}

    async def ask(self, method, path, body=b""):
        stream = self.begin(method, path, body)
        return await self.answers[stream][1]

    def begin(self, method, path, body=b""):
        stream = self._quic.get_next_available_stream_id()
        self.answers[stream] = (bytearray(), asyncio.get_running_loop().create_future())
        self.http.send_headers(
            stream,
            [
                (b":method", method),
                (b":scheme", b"https"),
                (b":authority", b"localhost"),
                (b":path", path.encode()),
            ],
            end_stream=not body,
        )
        if body:
            self.http.send_data(stream, body, end_stream=True)
        self.transmit()
        return stream

    def cancel(self, stream):
        self._quic.stop_stream(stream, 0x10C)
        self.transmit()

    def quic_event_received(self, event):
        if isinstance(event, StreamReset) and event.stream_id in self.answers:
            future = self.answers[event.stream_id][1]
            if not future.done():
                future.set_result(None)
        for event in self.http.handle_event(event):
            if not isinstance(event, (HeadersReceived, DataReceived)):
                continue
            read, future = self.answers[event.stream_id]
            if isinstance(event, DataReceived):
                read.extend(event.data)
            if event.stream_ended and not future.done():
                future.set_result(bytes(read))


def told(what, is_right):
    if not is_right:
        sys.exit(f"wrong: {what}")
    print(f"  ok: {what}", flush=True)


async def ask(port, authority):
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=True, server_name="localhost")
    configuration.load_verify_locations(authority)
    async with connect("127.0.0.1", port, configuration=configuration, create_protocol=Client) as client:
        read = await client.ask(b"GET", f"/bytes/{LENGTH}")
        told("5 MB", read == pattern(LENGTH))
        read = await client.ask(b"POST", "/echo", pattern(LENGTH))
        told("5 MB by POST, and back", read == pattern(LENGTH))
        lengths = range(1000, 1200)
        # As many at a time as the server allows.
        reads = []
        for some in (lengths[:100], lengths[100:]):
            reads += await asyncio.gather(*(client.ask(b"GET", f"/bytes/{it}") for it in some))
        told("200 requests, 100 at a time", reads == [pattern(it) for it in lengths])
        before = int(await client.ask(b"GET", "/cancelled"))
        slow = [client.begin(b"GET", "/slow") for _ in range(10)]
        await asyncio.sleep(0.1)
        for stream in slow:
            client.cancel(stream)
        for _ in range(1000):
            if int(await client.ask(b"GET", "/cancelled")) == before + 10:
                break
            await asyncio.sleep(0.01)
        else:
            sys.exit("wrong: the server does not cancel")
        told("ten cancelled requests", True)
        client._quic.request_key_update()
        told("a request after a key update", await client.ask(b"GET", "/bytes/10") == pattern(10))


async def run():
    match sys.argv[1:]:
        case ["serve", port, certificate, key]:
            configuration = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=False)
            configuration.load_cert_chain(certificate, key)
            await serve("127.0.0.1", int(port), configuration=configuration, create_protocol=Server)
            print("listening", flush=True)
            await asyncio.Future()
        case ["ask", port, authority]:
            await ask(int(port), authority)
        case ["vanish", port, authority]:
            configuration = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=True, server_name="localhost")
            configuration.load_verify_locations(authority)
            async with connect("127.0.0.1", int(port), configuration=configuration, create_protocol=Client) as client:
                client.begin(b"GET", f"/bytes/{100 * LENGTH}")
                await asyncio.sleep(0.1)
                import os

                # Without a word to the server.
                os._exit(0)


asyncio.run(run())
