"""The data directory of the embedded default, and the lock that one process holds."""

import fcntl
import hashlib
import os
import tempfile
from pathlib import Path

from switchboard.foundation.settings import OperatorError, Settings

# sockaddr_un holds 107 bytes; PostgreSQL has the longest socket name.
MAX_SOCKET_PATH = 107 - len("/.s.PGSQL.5432")


class DirectoryInUse(OperatorError):
    """Another process uses the data directory."""


class DataDirectory:
    """A data directory: its paths, and a lock for the lifetime of the process."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._lock: int | None = None

    def claim(self) -> None:
        """Create the directory (readable only by its owner) and lock it. Raises `DirectoryInUse`."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 32).decode().strip()
            os.close(lock)
            raise DirectoryInUse(
                f"{self.path} is in use by process {holder or '?'}; set SWITCHBOARD_DATA_DIR to another directory"
            ) from None
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def sockets(self) -> Path:
        """Folder of the servers' sockets: inside, or a temporary one if the path would be too long for a socket."""
        inside = self.path / "run"
        if len(os.fsencode(inside)) <= MAX_SOCKET_PATH:
            return inside
        name = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"switchboard-{os.getuid()}-{name}"

    @property
    def database_url(self) -> str:
        return f"postgresql://switchboard@/switchboard?host={self.sockets}"

    @property
    def redis_url(self) -> str:
        return f"unix://{self.sockets / 'redis.sock'}"

    @property
    def dev_file(self) -> Path:
        """Path of `dev.json`, which exists while `make run` is ready to serve."""
        return self.path / "dev.json"

    @property
    def logs(self) -> Path:
        return self.path / "logs"


def get_server_urls(settings: Settings) -> tuple[str, str]:
    """Return the addresses of database and Redis: the operator's own, or the embedded ones."""
    directory = DataDirectory(settings.data_dir)
    return settings.database_url or directory.database_url, settings.redis_url or directory.redis_url
