"""What answers in the place of a server, byte for byte."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SECRET = "mgk_000000000000_this-is-the-secret-of-a-key-0123456789abcdefghi"


@contextmanager
def talking(answer: bytes, *, hold: bool = False) -> Iterator[str]:
    """Something that gives every connection the same bytes, and then closes it, or holds it."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while not over.is_set():
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    take_request(connection)
                    connection.sendall(answer)
                    if hold:
                        over.wait(20)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(20)


def take_request(connection: socket.socket) -> None:
    """All of it: a connection that is closed with something unread is reset."""
    got = connection.recv(65_536)
    while got and b"\r\n\r\n" not in got:
        got += connection.recv(65_536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    missing = int(length[1]) - len(body) if length is not None else 0
    while missing > 0:
        missing -= len(connection.recv(missing)) or missing
