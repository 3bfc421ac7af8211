"""Plugins' distributions in the environment of the running program: installation, removal, and their tests.

pip changes nothing but the plugin and what it lacks: every other distribution is constrained to its version, because
the platform was tested with it.
"""

import importlib
import json
import re
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, distributions, entry_points
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import unquote, urlparse

from switchboard.plugin_sdk.hooks import ENTRY_POINT_GROUP

NO_TESTS: Final = 5
"""Exit status of pytest if it has found no test."""
SHOWN_LINES: Final = 20


class PackageError(Exception):
    """pip failed. The message is its own."""


@dataclass(frozen=True, slots=True)
class ContractRun:
    """Result of a plugin's own tests. `passed` is None if they were not found."""

    passed: bool | None
    summary: str


def list_plugin_versions() -> dict[str, tuple[str, str]]:
    """Return distribution and version of each installed plugin, by its name. Imports no plugin."""
    importlib.invalidate_caches()
    return {
        entry.name: (entry.dist.name, entry.dist.version)
        for entry in entry_points(group=ENTRY_POINT_GROUP)
        if entry.dist is not None
    }


def install_distribution(requirement: str, *, editable: bool = False, upgraded: str | None = None) -> None:
    """Install a requirement, a wheel, or a folder. `upgraded` is the distribution whose version may change.

    Raises `PackageError`, also if the plugin needs another version of something that is installed.
    """
    with _write_constraints(upgraded) as constraints:
        options = ["--upgrade"] if upgraded else []
        _run_installer("install", [*options, "--constraint", constraints, *(["-e"] if editable else []), requirement])
    # Python reads `.pth` files, by which a folder is installed in place, only when it starts.
    site.addsitedir(sysconfig.get_path("purelib"))
    importlib.invalidate_caches()


def uninstall_distribution(name: str) -> None:
    """Remove a distribution. What it needed stays, because others may need it, too. Raises `PackageError`."""
    _run_installer("uninstall", [name])


def run_contract(folder: Path | None) -> ContractRun:
    """Run the tests of a plugin's source folder in a process of their own."""
    if folder is None or not (folder / "tests").is_dir():
        return ContractRun(None, "not run: the tests are not installed; give their folder with --tests")
    if find_spec("pytest") is None:
        return ContractRun(None, "not run: pytest is not installed")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - pytest
    if done.returncode == NO_TESTS:
        return ContractRun(None, f"not run: {folder / 'tests'} has no tests")
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["no output"]
    shown = lines[-1:] if done.returncode == 0 else lines[-SHOWN_LINES:]
    return ContractRun(done.returncode == 0, "\n".join(shown))


def find_source(name: str) -> Path | None:
    """Return the folder of a distribution that is installed in place (PEP 610); None for any other."""
    try:
        text = distribution(name).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    origin = json.loads(text or "{}")
    if not origin.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlparse(origin["url"]).path))


@contextmanager
def _write_constraints(upgraded: str | None) -> Iterator[str]:
    """Write the version of each other distribution, of two with one name that of the first, which is imported."""
    versions: dict[str, str] = {}
    for each in distributions():
        if each.name:
            versions.setdefault(_normalize(each.name), each.version)
    versions.pop(_normalize(upgraded or ""), None)
    with TemporaryDirectory() as folder:
        path = Path(folder, "constraints.txt")
        path.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
        yield str(path)


def _normalize(name: str) -> str:
    """Return the name of a distribution as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _run_installer(command: str, arguments: Sequence[str]) -> None:
    """Run pip, or uv in an environment without pip."""
    if find_spec("pip") is not None:
        yes = ["--yes"] if command == "uninstall" else []
        program = [sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check", *yes]
    elif (uv := which("uv")) is not None:
        program = [uv, "pip", command, "--quiet", "--python", sys.executable]
    else:
        raise PackageError(f"{sys.executable} has no pip, and there is no uv")
    done = subprocess.run([*program, *arguments], capture_output=True, text=True, check=False)  # noqa: S603 - pip or uv
    importlib.invalidate_caches()
    if done.returncode:
        raise PackageError("\n".join((done.stderr or done.stdout).strip().splitlines()[-SHOWN_LINES:]))
