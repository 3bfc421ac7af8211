"""A child process with the operating system's means: started without the platform's secrets, measured, and killed."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

CHILD: Final = f"{__package__}.child"
STANDARD_ERROR: Final = 2
"""Standard output of the process goes there, because nothing else reads it."""
ENVIRONMENT: Final = (
    "PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
)  # fmt: skip
"""Variables that the process gets. None of them has a secret of the platform."""
EXIT_LOOK_SECONDS: Final = 0.01


class ChildProcess:
    """A running child process. It ends when its standard input is closed, also by the end of this process."""

    def __init__(self, started: "subprocess.Popen[bytes]") -> None:
        self._process = started

    @property
    def pid(self) -> int:
        """Process id, and id of its process group."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """True once the process has ended, whatever it has started."""
        return self._process.poll() is not None

    @property
    def memory_bytes(self) -> int:
        """Resident memory in bytes; 0 where the system has no `/proc`, or the process has ended."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            return 0

    async def wait(self) -> str:
        """Wait until the process has ended, and describe its status: `exit status 1`, `signal 9`."""
        while (status := self._process.poll()) is None:  # noqa: ASYNC110 - only the kernel knows
            await asyncio.sleep(EXIT_LOOK_SECONDS)
        return f"signal {-status}" if status < 0 else f"exit status {status}"

    async def kill(self) -> str:
        """Kill the process with all that it has started, and describe its status."""
        # The group outlives its leader if the plugin has started processes of its own.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        status = await self.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        return status


async def start_child() -> tuple[ChildProcess, socket.socket]:
    """Start a child and return it with this end of its socket. Raises `OSError`."""
    own, given = socket.socketpair()
    # In a thread, and not by the event loop: libuv forks, which takes long in a large process.
    spawning = asyncio.create_task(asyncio.to_thread(_spawn, given))
    try:
        started = await asyncio.shield(spawning)
    except (OSError, asyncio.CancelledError):
        own.close()
        with suppress(OSError):  # A canceled wait does not stop the thread, which may still start the process.
            await ChildProcess(await spawning).kill()
        raise
    finally:
        given.close()
    return ChildProcess(started), own


def _spawn(given: socket.socket) -> "subprocess.Popen[bytes]":
    # The same modules, and nothing that the platform keeps secret.
    environment = {name: value for name in ENVIRONMENT if (value := os.environ.get(name)) is not None}
    environment["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    return subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, "-P", "-m", CHILD, str(given.fileno())],
        stdin=subprocess.PIPE,
        stdout=STANDARD_ERROR,
        pass_fds=[given.fileno()],
        env=environment,
        start_new_session=True,
    )
