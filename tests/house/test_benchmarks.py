"""Benchmarks can be started: each of their modules can be imported, in another process, because some declare tables."""

import subprocess
import sys

from tests.fixtures.servers import REPOSITORY

IN_PIPECATS_ENVIRONMENT = {"pipecat_server"}


def test_benchmarks_can_be_imported() -> None:
    names = sorted({path.stem for path in (REPOSITORY / "bench").glob("[a-z]*.py")} - IN_PIPECATS_ENVIRONMENT)
    imports = "; ".join(f"import bench.{name}" for name in names)
    imported = subprocess.run(
        [sys.executable, "-c", imports], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert imported.returncode == 0, imported.stderr
