"""A server behind PgBouncer in transaction mode: each transaction may have another session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from memgraph import MemoryService
from memgraph.errors import StorageError

PORT = 6432
CONFIGURATION = """
[databases]
* = host={server} dbname={database}
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 2
"""


@pytest.fixture
def pooled(postgres_url: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a pool of two sessions on the server of the tests."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("needs pgbouncer on the PATH, such as Debian's package of that name")
    url = sa.make_url(postgres_url)
    server = str(url.query.get("host", ""))
    if not server.startswith("/"):
        pytest.skip("starts a pool only for a server on a socket of this machine")
    # Both are the server's user: PgBouncer refuses root, and only that user enters the folder.
    folder = Path(tempfile.mkdtemp(prefix="pool-", dir=server))
    owner = Path(server).stat()
    names = {"server": server, "database": url.database, "port": PORT, "folder": folder}
    (folder / "configuration").write_text(CONFIGURATION.format(**names))
    (folder / "users").write_text(f'"{url.username}" ""\n')
    for each in (folder, *folder.iterdir()):
        os.chown(each, owner.st_uid, owner.st_gid)
    process = subprocess.Popen([program, str(folder / "configuration")], user=owner.st_uid, cwd="/")
    try:
        until = time.monotonic() + 30
        while not (folder / f".s.PGSQL.{PORT}").exists():
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        yield f"postgresql+psycopg://{url.username}@/{url.database}?host={folder}&port={PORT}"
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder)


USES = """
import sys
from memgraph import MemoryService
with MemoryService(sys.argv[1]) as service:
    orc = service.orchestrator("orc-1")
    for number in range(10):
        old = orc.remember(f"Worker {sys.argv[2]} stores number {number}.")
        orc.correct(old, f"Worker {sys.argv[2]} corrects number {number}.", reason="a slip")
        assert orc.recall(f"worker {sys.argv[2]} number {number}").items
"""


def test_processes_share_two_sessions(pooled: str, tmp_path: Path) -> None:
    root, url = tmp_path / "root", f"{pooled}&prepare_threshold=none"
    with MemoryService(root, environ={"MEMGRAPH_MEMORY__STORAGE__URL": url}) as service:
        orc = service.orchestrator("orc-1", create=True)
        environ = {**os.environ, "MEMGRAPH_MEMORY__STORAGE__URL": url}
        workers = [
            subprocess.Popen([sys.executable, "-c", USES, str(root), str(number)], env=environ)
            for number in range(3)
        ]
        assert [worker.wait(120) for worker in workers] == [0, 0, 0]
        before = service.clock.now_ms()
        assert orc.maintenance.stats()["memories"]["kind"] == {"fact": 60}
        assert orc.verify().findings == []
        assert orc.bulletin(as_of=before).bulletin.text
        # A session of an analyst would leave its settings to the next one.
        with pytest.raises(OperationalError), service.session("orc-1") as session:
            session.connection()


def test_a_pool_that_knows_no_prepared_statements_is_named(pooled: str, tmp_path: Path) -> None:
    config = {"memory.storage.url": pooled}

    def use() -> None:
        for _ in range(5):
            with MemoryService(tmp_path / "root", config=config, environ={}) as service:
                service.orchestrator("orc-1", create=True).remember("The gate closes at nine.")

    with pytest.raises(StorageError, match="prepare_threshold=none"):
        use()
