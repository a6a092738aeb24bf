"""A package index on loopback that has one wheel; all else comes from the default index."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from support.thread_server import thread_http_server


@contextmanager
def serve_index(wheel: Path) -> Generator[str]:
    """Serve the wheel as the form of a simple index has it (PEP 503); gives the index's URL."""
    content = wheel.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    link = f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>'
    page = f"<!doctype html><html><body>{link}</body></html>".encode()
    found = {"/simple/tidegate/": page, f"/simple/tidegate/{wheel.name}": content}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = found.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("content-type", "text/html" if body is page else "application/zip")
            self.send_header("content-length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on stderr."""

    with thread_http_server(Handler) as port:
        yield f"http://127.0.0.1:{port}/simple/"
