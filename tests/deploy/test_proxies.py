"""The proxies' configurations of docs/how-to/production.md: the page quotes them, and the programs accept them."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.fixtures.debian_tools import find_tool
from tests.fixtures.servers import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
PAGE = REPOSITORY / "docs" / "how-to" / "production.md"
CONFIGURATIONS = {"haproxy": DEPLOY / "haproxy" / "haproxy.cfg", "nginx": DEPLOY / "nginx" / "nginx.conf"}


@pytest.mark.parametrize("program", CONFIGURATIONS)
def test_the_page_quotes_lines_of_the_configuration(program: str) -> None:
    page = PAGE.read_text()
    quoted = [line for block in re.findall(rf"```{program}\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    assert quoted
    assert set(quoted) <= set(CONFIGURATIONS[program].read_text().splitlines())
    assert f"({Path('../..') / CONFIGURATIONS[program].relative_to(REPOSITORY)})" in page


async def create_certificate(folder: Path) -> None:
    """Create a self-signed certificate, as the page does, in the files that both configurations name."""
    command = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=voice.example.com"]
    files = ["-keyout", str(folder / "switchboard.key"), "-out", str(folder / "switchboard.crt")]
    await run(find_tool("openssl"), *command, *files)
    both = (folder / "switchboard.crt").read_text() + (folder / "switchboard.key").read_text()
    (folder / "switchboard.pem").write_text(both)


async def run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, problems = await process.communicate()
    assert process.returncode == 0, problems.decode()


@pytest.mark.parametrize("program", CONFIGURATIONS)
async def test_the_program_accepts_the_configuration(program: str, tmp_path: Path) -> None:
    path = find_tool(program)
    await create_certificate(tmp_path)
    own = tmp_path / CONFIGURATIONS[program].name
    own.write_text(CONFIGURATIONS[program].read_text().replace(f"/etc/{program}/", f"{tmp_path}/"))
    await run(path, *(["-c", "-f", str(own)] if program == "haproxy" else ["-t", "-q", "-c", str(own)]))
