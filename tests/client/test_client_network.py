"""Failures on real sockets: no server, silence, partial responses, bad certificates, proxies."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from serving_worlds import Served

from memgraph.client import AsyncClient, Client
from memgraph.errors import (
    InvalidInput,
    MemgraphError,
    OrchestratorMissing,
    RemoteAnswerInvalid,
    RemoteUnavailable,
    Unauthenticated,
)

ROOT = Path(__file__).resolve().parents[2]


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


def asked(url: str, *, word: str = "get", **options: Any) -> Any:
    given = {"get": ("fact_1",), "recall": ("what?",), "remember": ("It is so.",)}[word]
    with Client(url, key=SECRET, retries=0, **options) as client:
        return getattr(client.orchestrator("orc-1"), word)(*given)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "RemoteProtocolError"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "RemoteProtocolError"),
        (HEAD + b"Content-Length: 900\r\n\r\n{", "RemoteProtocolError"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", "RemoteProtocolError"),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", "DecodingError"),
    ],
    ids=["nothing", "ssh", "half", "half-chunked", "no-gzip"],
)
def test_half_an_answer_is_none(answer: bytes, why: str) -> None:
    with talking(answer) as url, pytest.raises(RemoteUnavailable) as refused:
        asked(url, word="remember")
    assert refused.value.details == {"cause": why}


def test_why_nobody_is_reached_is_said_with_the_address_alone(served: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        closed = f"http://127.0.0.1:{gone.getsockname()[1]}"
    for address, why in ((closed, "refused"), (served.url.replace("http:", "https:"), "SSL")):
        with pytest.raises(RemoteUnavailable, match=why) as refused:
            asked(address)
        told = f"{address} cannot be reached; is the server running? ("
        assert refused.value.message.startswith(told)
        assert refused.value.details == {"cause": "ConnectError"}


def test_neither_silence_nor_a_page_without_end_is_waited_for() -> None:
    with talking(b"", hold=True) as url, pytest.raises(RemoteUnavailable) as refused:
        asked(url, timeout_s=0.2)
    assert refused.value.details == {"cause": "ReadTimeout"}
    assert refused.value.message == f"{url} did not send a complete response (ReadTimeout)"
    for status in (b"200 OK", b"404 Not Found"):
        page = b"HTTP/1.1 " + status + b"\r\nContent-Type: text/html\r\n\r\n<p>and so on"
        with talking(page, hold=True) as url, pytest.raises(RemoteAnswerInvalid):
            asked(url)


def test_a_redirect_is_not_followed_and_the_key_goes_nowhere() -> None:
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        place = b"Location: http://127.0.0.1:%d/\r\n" % elsewhere.getsockname()[1]
        answer = b"HTTP/1.1 307 Temporary Redirect\r\n" + place + b"Content-Length: 0\r\n\r\n"
        with talking(answer) as url, pytest.raises(RemoteAnswerInvalid, match="redirects"):
            asked(url, word="recall")
        elsewhere.settimeout(0)
        with pytest.raises(BlockingIOError):
            got.append(elsewhere.accept()[0].recv(10))
    assert got == []


def test_proxies_of_the_environment_are_not_asked(
    served: Served, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(each, "http://127.0.0.1:9")
    assert name == served.orchestrator(name).name
    with pytest.raises(Unauthenticated):
        asked(served.url)


def test_an_unknown_certificate_is_refused_and_a_named_authority_believed(tmp_path: Path) -> None:
    certificate, private = made_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    answer = HEAD + b'Content-Length: 13\r\n\r\n{"items": []}'
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"

        def serve() -> None:
            for _ in range(3):
                connection, _ = listening.accept()
                try:
                    with context.wrap_socket(connection, server_side=True) as wrapped:
                        wrapped.recv(65_536)
                        wrapped.sendall(answer)
                except (ssl.SSLError, ConnectionError):
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with (
            Client(url, key=SECRET, retries=0) as client,
            pytest.raises(RemoteUnavailable, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            client.orchestrators()
        known = ssl.create_default_context(cafile=str(certificate))
        for verify in (known, False):
            with Client(url, key=SECRET, retries=0, verify=verify) as client:
                assert client.orchestrators() == []
        thread.join(20)
        assert not thread.is_alive()


def made_certificate(folder: Path) -> tuple[Path, Path]:
    """Create a certificate for 127.0.0.1, signed by its own authority, and its private key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, to make a certificate")
    certificate, private = folder / "certificate.pem", folder / "private.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=memgraph test"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(private), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, private


def test_what_is_no_address_or_no_key_is_refused_and_not_repeated() -> None:
    for url in (
        "memory.example",
        "http://",
        "https://ada:pass-word@memory.example",
        "https://memory.example/?token=pass-word",
        "http://[::1",
        "http://memory.example:99999999",
    ):
        with pytest.raises(InvalidInput) as refused:
            Client(url)
        assert "pass-word" not in f"{refused.value!r} {refused.value.details}"
    for key in ("", "two words", "line\nbreak", "schlüssel"):
        with pytest.raises(InvalidInput) as refused:
            Client("http://127.0.0.1:1", key=key)
        assert not key or key not in f"{refused.value!r} {refused.value.details}"


def test_a_key_is_not_sent_to_another_machine_unencrypted() -> None:
    for url in ("http://memory.example", "http://192.0.2.7:8420", "http://localhost.example"):
        with pytest.raises(InvalidInput, match="unencrypted"):
            Client(url, key=SECRET)
        Client(url).close()
        Client(url, key=SECRET, plain_http=True).close()
    for url in ("http://localhost:1", "http://127.0.0.1", "http://[::1]:8420", "https://x.example"):
        Client(url, key=SECRET).close()


def test_the_key_is_in_no_text(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """The key appears in no repr, no error and no log at any level."""
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    with talking(b"") as broken, talking(HEAD + b"Content-Length: 2\r\n\r\n{}") as strange:
        for url in (served.url, broken, strange, "http://127.0.0.1:9"):
            for word in ("get", "recall", "remember"):
                try:
                    asked(url, word=word)
                except MemgraphError as error:
                    told += traceback.format_exception(error)
                    told += [repr(error), str(error.details), repr(error.__context__)]
    for client in (Client(served.url, key=SECRET), AsyncClient(served.url, key=SECRET)):
        handle = client.orchestrator("orc-1")
        told += [repr(client), str(client), repr(handle), f"{vars(client)}", f"{vars(handle)}"]
    blocking = client.client
    told += [f"{vars(blocking)}", f"{vars(blocking._server)}", repr(blocking._server)]
    asyncio.run(client.close())
    told += [f"{each.getMessage()} {each.__dict__}" for each in caplog.records]
    assert len(told) > 12 * 3
    assert not any(SECRET in each or SECRET[-20:] in each for each in told)


def test_nothing_can_be_called_so() -> None:
    with Client("http://127.0.0.1:9") as client:
        for name in ("", "a/b", "\ud800", "a\x00b"):
            for say in (client.orchestrator, client.health):
                with pytest.raises(OrchestratorMissing):
                    say(name)
        with pytest.raises(InvalidInput):
            client.orchestrator("orc-1", clearance="Cosmic")
        with pytest.raises(InvalidInput):
            client.orchestrator("orc-1", project_id="web")


def test_importing_the_client_is_light_and_names_the_extra_that_it_needs() -> None:
    # httpx imports rich if it is installed.
    heavy = "sqlalchemy sqlmodel numpy networkx alembic fastapi uvicorn starlette mcp litellm"
    parts = "service.opened store.snapshot bulletin surfaces retrieval consolidation graph"
    ours = " ".join(f"memgraph.{each}" for each in parts.split())
    script = (
        "import sys, memgraph.client\n"
        f"print([each for each in {(heavy + ' ' + ours).split()} if each in sys.modules])\n"
        "for each in [name for name in sys.modules if name.startswith('memgraph.client')]:\n"
        "    del sys.modules[each]\n"
        "sys.modules['httpx'] = None\n"
        "from memgraph.errors import ExtraMissing\n"
        "try:\n    import memgraph.client\n"
        "except ExtraMissing as error:\n    print(error.details['extra'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.split() == ["[]", "client"]


def test_a_cancelled_call_keeps_no_process_from_ending() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        script = (
            "import asyncio\n"
            "from memgraph.client import AsyncClient\n"
            "async def main():\n"
            f"    async with AsyncClient('http://127.0.0.1:{silent.getsockname()[1]}') as client:\n"
            "        calls = client.orchestrators, client.orchestrator('orc-1').memories.counts\n"
            "        for call in calls:\n"
            "            try:\n"
            "                await asyncio.wait_for(call(), 0.1)\n"
            "            except TimeoutError:\n"
            "                print('cancelled')\n"
            "asyncio.run(main())"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            timeout=25,
        )
    assert done.stdout.split() == ["cancelled", "cancelled"]
    assert done.stderr == ""


def copied(url: str, word: str, target: Path) -> None:
    with Client(url, key=SECRET, retries=0) as client:
        getattr(client.orchestrator("orc-1").exchange, word)(target)


def test_half_a_copy_or_something_else_leaves_nothing_behind(tmp_path: Path) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>and so on"
    export = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
    for answer, word, kind in (
        (page, "export", RemoteAnswerInvalid),
        (export + b"Content-Length: 900\r\n\r\n{}\n", "export", RemoteUnavailable),
        (export + b"Content-Length: 4\r\n\r\nSQLi", "backup", RemoteAnswerInvalid),
    ):
        # A page without end is not waited for.
        with talking(answer, hold=answer == page) as url, pytest.raises(kind):
            copied(url, word, tmp_path / "copy")
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        copied("http://127.0.0.1:9", "export", tmp_path / "no" / "copy")
