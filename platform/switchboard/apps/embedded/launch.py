"""Run a server as a child that dies with its parent: `python launch.py <parent pid> <signal> COMMAND…`.

A program of its own, because its steps must happen in the child. PostgreSQL refuses to run as root, so the child of
root first enters a user namespace in which it is an ordinary user; outside it is still root, so it reaches the data
directory without changed permissions. Where namespaces are forbidden, it becomes `nobody`, which was given the server's
own directory.
"""

import ctypes
import os
import pwd
import sys

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1
ORDINARY_USER = 1000


def _enter_namespace(libc: ctypes.CDLL) -> bool:
    if libc.unshare(CLONE_NEWUSER) != 0:
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{ORDINARY_USER} 0 1"), ("gid_map", f"{ORDINARY_USER} 0 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - pathlib would double this program's start
            file.write(text)
    return True


def main() -> None:
    """Drop root, arrange to die with the parent, and become the command."""
    parent, death_signal, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    os.setsid()
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if os.geteuid() == 0 and not _enter_namespace(libc):
            nobody = pwd.getpwnam("nobody")
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)
        libc.prctl(PR_SET_PDEATHSIG, death_signal)
        if os.getppid() != parent:
            sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - the command is ours


if __name__ == "__main__":
    main()
