"""Paths: the runtime root, the layout of an orchestrator's folder, and checks of source files."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memgraph.errors import AccessDenied, Conflict, DatabaseFull, InvalidInput, StorageError

Stamp = tuple[tuple[int, int] | None, ...]

ROOT_VARIABLE = "MEMGRAPH_ROOT"
GLOBAL_CONFIG_NAME = "memgraph.toml"
KEYS_NAME = "keys.json"
KEYS_LOCK_NAME = f"{KEYS_NAME}.lock"
ERASURE_KEY_NAME = "erasure.key"
MEMORY_NAME = "memory"
DATABASE_NAME = "memory.db"
MAX_NAME_CHARS = 64
SOURCE_FIELD = "source_path"

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FULL_NAMES = {errno.errorcode[each] for each in _FULL}
# With less free space than this, in bytes, the disk counts as full.
_ROOM = 1 << 16
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_NAME_CHARS - 1}}}")
# Device names of Windows, where folders with such names cannot exist, and our own file names.
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", GLOBAL_CONFIG_NAME, KEYS_NAME, KEYS_LOCK_NAME]
    + [ERASURE_KEY_NAME]
    + [f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)]
)


def check_orchestrator_name(name: str) -> str:
    """Return the name of an orchestrator, after checking that it is a safe folder name.

    A name has 1 to 64 characters of A-Z a-z 0-9 . _ -, begins with a letter or digit, does not end
    with a dot, has no two dots in a row, and is not reserved.

    Raises:
        InvalidInput: the name is not allowed.
    """
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InvalidInput(
            f"an orchestrator's name must have 1 to {MAX_NAME_CHARS} characters of"
            " A-Z a-z 0-9 . _ - and begin with a letter or a digit"
        )
    if ".." in name or name.endswith("."):
        raise InvalidInput(
            "an orchestrator's name must not contain two dots in a row or end with a dot"
        )
    # Windows reserves nul.txt as well as nul.
    if {name.lower(), name.lower().split(".")[0]} & _RESERVED:
        raise InvalidInput(f"the name {name!r} is reserved; choose another for the orchestrator")
    return name


def runtime_root(
    argument: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None
) -> Path:
    """Return the folder of all orchestrators.

    It is the argument, else MEMGRAPH_ROOT, else the platform's folder for user data.

    Args:
        argument: a path, ``~`` allowed; relative to the working directory.
        environ: the environment variables; None: those of the process. An empty variable counts as
            unset.

    Returns:
        An absolute path. Nothing is created, and links are not followed.

    Raises:
        InvalidInput: the path is empty or contains a NUL, or its home folder does not exist.
    """
    variables = os.environ if environ is None else environ
    chosen = argument if argument is not None else variables.get(ROOT_VARIABLE) or None
    if chosen is None:
        # Imported late: platformdirs takes 40 ms to import, and most callers give a root.
        from platformdirs import user_data_path

        return user_data_path("memgraph", appauthor=False)
    text = os.fspath(chosen)
    if not text or "\0" in text:
        raise InvalidInput("the runtime root must not be empty or contain a NUL character")
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:
        raise InvalidInput(
            "the home folder in the path of the runtime root does not exist"
        ) from error


@dataclass(frozen=True, slots=True)
class OrchestratorPaths:
    """The layout of one orchestrator below a runtime root. Nothing is created.

    ::

        <root>/<name>/memory/
            memory.db  config.toml
            ingest/  ingest/processed/  ingest/rejected/
            bulletins/  logs/memory.log

    Raises:
        InvalidInput: the name is not allowed, see ``check_orchestrator_name``.
    """

    root: Path
    name: str

    def __post_init__(self) -> None:
        check_orchestrator_name(self.name)

    @property
    def directory(self) -> Path:
        return self.root / self.name

    @property
    def memory(self) -> Path:
        return self.directory / MEMORY_NAME

    @property
    def database(self) -> Path:
        return self.memory / DATABASE_NAME

    @property
    def config_file(self) -> Path:
        return self.memory / "config.toml"

    @property
    def ingest(self) -> Path:
        return self.memory / "ingest"

    @property
    def processed(self) -> Path:
        return self.ingest / "processed"

    @property
    def rejected(self) -> Path:
        return self.ingest / "rejected"

    @property
    def bulletins(self) -> Path:
        return self.memory / "bulletins"

    @property
    def logs(self) -> Path:
        return self.memory / "logs"

    @property
    def log_file(self) -> Path:
        return self.logs / "memory.log"

    @property
    def left_on_servers(self) -> Path:
        """The file with a line for each schema that a move has left on a server."""
        return self.memory / "replaced" / "servers.txt"

    @property
    def moving(self) -> Path:
        """The file that exists during a move to another store, with the addresses of both."""
        return self.memory / "moving.json"

    @property
    def erasing(self) -> Path:
        """The lock file of erasures, which every erasure touches."""
        return self.memory / "erasing.lock"

    @property
    def erased(self) -> Stamp:
        """A stamp that changes with every erasure, for readers without access to the database."""
        return stamp_of(self.erasing)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Every folder of the layout, parents first."""
        return (
            self.memory,
            self.ingest,
            self.processed,
            self.rejected,
            self.bulletins,
            self.logs,
        )

    def make_folders(self) -> None:
        """Create the missing folders of the layout and its log, accessible only to their owner."""
        for folder in self.folders:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.path.lexists(self.log_file):
            self.log_file.touch(mode=0o600)


def global_config_file(root: Path) -> Path:
    return root / GLOBAL_CONFIG_NAME


def orchestrator_names(root: Path) -> list[str]:
    """Return the sorted names under a root with a ``memory`` folder; empty without a root."""
    try:
        entries = sorted(os.listdir(root))  # noqa: PTH208 - names alone, no Path for each of 1,000
    except FileNotFoundError:
        return []
    return [name for name in entries if _is_orchestrator(root, name)]


def canonical_source(
    path: str | os.PathLike[str],
    own: OrchestratorPaths,
    allowed_roots: Iterable[str | os.PathLike[str]] = (),
) -> Path:
    """Return the real path of a source file, after checking that this orchestrator may read it.

    Files are allowed in its own drop zone, or in an allowed root if they are outside the runtime
    root and every orchestrator's folder. All links are resolved first. Links may change after the
    check, so open the file without following links.

    Raises:
        AccessDenied: the file is not allowed, whether it exists or not, or cannot be resolved.
    """
    real = _real(path)
    if real.is_relative_to(_real(own.ingest)):
        return real
    inside = any(real.is_relative_to(_real(root)) for root in allowed_roots)
    if not inside or real.is_relative_to(_real(own.root)) or _is_in_orchestrator(real):
        raise AccessDenied("the source file is outside the allowed folders", field=SOURCE_FIELD)
    return real


def stamp_of(*files: Path) -> Stamp:
    """Return (modification time in ns, size) of each file; None for a missing file."""
    stamps: list[tuple[int, int] | None] = []
    for file in files:
        try:
            status = file.stat()
        except FileNotFoundError:
            stamps.append(None)
        else:
            stamps.append((status.st_mtime_ns, status.st_size))
    return tuple(stamps)


@contextmanager
def naming_full_disk(folder: Path) -> Iterator[None]:
    """Translate errors inside the block into DatabaseFull if the disk of a folder is full.

    SQLite may report a full disk as an I/O error, Python as an ``OSError``.

    Raises:
        DatabaseFull: the disk or the user's quota is full, or a file is as large as it may be.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise DatabaseFull("the disk is full; nothing was changed", path=str(folder)) from error
    except StorageError as error:
        details = error.details
        no_space = (
            str(details.get("sqlite", "")).startswith("SQLITE_IOERR") and _free(folder) < _ROOM
        )
        if isinstance(error, DatabaseFull) or not (no_space or details.get("errno") in _FULL_NAMES):
            raise
        raise DatabaseFull("the disk is full; nothing was written", path=str(folder)) from error


def _free(folder: Path) -> int:
    """Return the bytes that are free for the largest file of a folder."""
    try:
        free = shutil.disk_usage(folder).free
        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if limit == resource.RLIM_INFINITY:
            return free
        return min(free, limit - max(file.stat().st_size for file in folder.iterdir()))
    except OSError:
        return _ROOM


def take_free_name(draft: Path, target: Path) -> None:
    """Move a draft to its target name, unless that was taken meanwhile.

    The draft may remain as a second link to the file.

    Raises:
        Conflict: the target exists.
    """
    conflict = Conflict(f"the file already exists: {target}", path=str(target))
    try:
        # Creating a link fails if the target exists; a rename would replace it.
        target.hardlink_to(draft)
    except FileExistsError:
        raise conflict from None
    except OSError:
        # On a file system without hard links the check and the rename are not atomic.
        if os.path.lexists(target):
            raise conflict from None
        draft.rename(target)


def _real(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if not Path(text).is_absolute():
        raise AccessDenied("the path of a source file must be absolute", field=SOURCE_FIELD)
    try:
        # Not strict: a missing file gets the same error as an existing one that is not allowed.
        return Path(os.path.realpath(text))
    except (OSError, ValueError) as error:
        raise AccessDenied(
            "the path of the source file cannot be resolved", field=SOURCE_FIELD
        ) from error


def _is_in_orchestrator(path: Path) -> bool:
    """Return True if a path without links lies in an orchestrator's folder, under any root."""
    folders = (path, *path.parents)
    return any(os.path.lexists(folder / MEMORY_NAME / DATABASE_NAME) for folder in folders)


def _is_orchestrator(root: Path, name: str) -> bool:
    try:
        return OrchestratorPaths(root, name).memory.is_dir()
    except InvalidInput:
        return False
