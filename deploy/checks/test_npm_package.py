"""The npm package of the TypeScript client works outside of the repository."""

import subprocess
from pathlib import Path

from tests.fixtures.debian_tools import find_node_tool, find_tool
from tests.fixtures.servers import REPOSITORY

PROGRAM = """
import { Switchboard, webhooks } from "switchboard-voice-client";
console.log(typeof new Switchboard({ apiKey: "x", baseUrl: "http://127.0.0.1" }).calls.create, typeof webhooks.verify);
"""


def test_the_package_is_installed_and_imported(tmp_path: Path) -> None:
    find_node_tool("tsc")
    npm = find_tool("npm")
    pack: list[str | Path] = [npm, "pack", "--silent", REPOSITORY / "clients" / "typescript"]
    archive = subprocess.run(pack, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run([npm, "install", "--silent", f"./{archive}"], cwd=tmp_path, check=True)
    (tmp_path / "program.mjs").write_text(PROGRAM)
    output = subprocess.check_output([find_tool("node"), "program.mjs"], cwd=tmp_path, text=True)
    assert output == "function function\n"
    packed = {path.name for path in (tmp_path / "node_modules" / "switchboard-voice-client" / "dist").iterdir()}
    assert packed == {"src"}
