"""systemd accepts the units."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.debian_tools import find_tool
from tests.fixtures.servers import REPOSITORY


@pytest.mark.parametrize("unit", sorted((REPOSITORY / "deploy" / "systemd").iterdir()), ids=lambda path: path.stem)
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    own = tmp_path / unit.name.replace("@.", "@8081.")
    own.write_text(unit.read_text().replace("/opt/switchboard/bin/switchboard", sys.executable))
    verified = subprocess.run(
        [find_tool("systemd-analyze"), "verify", own], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
