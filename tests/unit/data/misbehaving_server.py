"""A web server on 127.0.0.1 that does what it is told for each request in turn, mostly badly."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Act:
    """How one request is answered.

    Attributes:
        content: what is sent; None takes the server's.
        status: of the answer.
        send: bytes that really go out before the connection is cut; None sends all.
        announce: the Content-Length, where it is to be a lie; -1 leaves it out.
        stalls: fall silent after `send` bytes instead of cutting the connection.
        ranges: whether Range is honoured.
        shifts_range: how many bytes further on than asked an honoured range begins.
        tag: the ETag; None leaves it out.
        kind: the Content-Type.
        headers: further ones.
    """

    content: bytes | None = None
    status: int = 200
    send: int | None = None
    announce: int | None = None
    stalls: bool = False
    ranges: bool = True
    shifts_range: int = 0
    tag: str | None = '"v1"'
    kind: str = "application/octet-stream"
    headers: dict[str, str] = field(default_factory=dict)


class Server:
    """What the tests see of it: an address, the script, and the requests that came."""

    def __init__(self, content: bytes):
        self.content = content
        self.script: list[Act] = []
        self.requests: list[dict[str, str]] = []
        self.release = threading.Event()
        self.address = ""

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"

    def next_act(self) -> Act:
        return self.script.pop(0) if self.script else Act()


@contextmanager
def serve(content: bytes) -> Iterator[Server]:
    server = Server(content)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Stay silent."""

        def do_GET(self) -> None:
            server.requests.append({"path": self.path, **dict(self.headers)})
            act = server.next_act()
            whole = server.content if act.content is None else act.content
            start = _asked_start(self.headers.get("Range"), self.headers.get("If-Range"), act)
            if start >= len(whole) > 0 and start:
                self.send_error(416)
                return
            body = whole[start:]
            self.send_response(206 if start and act.status == 200 else act.status)
            length = len(body) if act.announce is None else act.announce
            if length >= 0:
                self.send_header("Content-Length", str(length))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
            if act.tag:
                self.send_header("ETag", act.tag)
            self.send_header("Content-Type", act.kind)
            for name, value in act.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body if act.send is None else body[: act.send])
            self.wfile.flush()
            if act.stalls:
                server.release.wait(10)
            self.close_connection = True

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    server.address = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def _asked_start(span: str | None, proof: str | None, act: Act) -> int:
    if not span or not act.ranges or (proof is not None and proof != act.tag):
        return 0
    return int(span.removeprefix("bytes=").rstrip("-")) + act.shifts_range
