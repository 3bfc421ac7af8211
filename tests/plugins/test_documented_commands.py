"""The pages about plugins are carried out in one installation: the lesson, from an empty folder to a call with a
provider of one's own, then each command and each block of a tenant file that the guides have.
"""

from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

import pytest

from tests.fixtures.free_ports import find_free_port
from tests.fixtures.servers import REPOSITORY
from tests.fixtures.terminal import Terminal
from tests.fixtures.tutorial import (
    SettingsBlock,
    ShownCommand,
    WrittenFile,
    add_tenant_block,
    is_tenant_block,
    read_blocks,
    read_steps,
)

GUIDES = REPOSITORY / "docs" / "plugins"
LESSON = REPOSITORY / "docs" / "tutorials" / "your-own-provider.md"
VENDOR_PORT = "8099"
STARTED = {"vendor.py": "Press CTRL+C", "carrier.py": "Press CTRL+C", "switchboard run": "Switchboard is ready"}
"""Commands that go on, and what they print once they are ready."""
LESSON_SECONDS = 600
CARRIED_OUT = ("writing", "translations", "containment", "carriers", "installing")
"""Guides in the order in which one reader can follow them: the last one removes the plugin of the first."""
ELSEWHERE = {
    "extensions": "its plugin is loaded and its block is applied by test_extension_settings.py",
    "testing": "its blocks are parts of pyproject.toml, which test_documented_code.py and test_plugin_quality.py use",
}


class Reader:
    """Somebody who follows the pages in one terminal, and starts what goes on in others."""

    def __init__(self, terminal: Terminal, running: ExitStack) -> None:
        self.terminal = terminal
        self._running = running
        self.vendor_port = str(find_free_port())

    def write(self, path: str, text: str) -> None:
        """Write a file in the current folder, with the port of this reader's vendor."""
        file = self.terminal.folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.replace(VENDOR_PORT, self.vendor_port))

    def type(self, command: str) -> str:
        """Run a command, or start one that goes on, and return what it prints."""
        sign = next((sign for program, sign in STARTED.items() if command.endswith(program)), None)
        if sign is not None:
            return self._running.enter_context(self.terminal.start(command, sign))
        return self.terminal.run(command)

    def prepare(self, guide: str) -> None:
        """Do what a guide expects of its reader."""
        if guide == "writing":
            self.terminal.run("switchboard plugins uninstall night_owl")
            self.terminal.run("rm -r switchboard-night-owl")
        elif guide == "carriers":
            self.vendor_port = str(find_free_port())
            self.terminal.run('export BLUE_LINE_KEY="the key of the tests"')
        elif guide == "installing":
            self.terminal.run("python -m pip wheel --quiet --no-deps --wheel-dir index ./switchboard-night-owl")
            self.terminal.run(f"export PIP_FIND_LINKS={self.terminal.folder / 'index'}")
            self.terminal.run("switchboard plugins uninstall night_owl")

    def follow(self, page: Path) -> None:
        """Carry out a page, step by step."""
        for step in read_steps(page):
            if isinstance(step, WrittenFile):
                self.write(step.path, step.text)
            elif isinstance(step, ShownCommand):
                printed = self.type(step.command)
                shown = ShownCommand(step.command, step.output.replace(VENDOR_PORT, self.vendor_port))
                assert shown.matches(printed), f"$ {step.command}\n{printed}\nbut the page shows\n{shown.output}"
            elif is_tenant_block(step.text):
                self.set_up(step)

    def set_up(self, block: SettingsBlock) -> None:
        """Add a block to the organization's tenant file, and apply it."""
        file = self.terminal.folder / "tenants" / "demo.toml"
        self.write("tenants/demo.toml", add_tenant_block(file.read_text(), block.text))
        assert self.terminal.run("switchboard tenants check") == "1 files, 0 errors\n"
        self.terminal.run("switchboard tenants apply")
        assert self.terminal.run("switchboard tenants diff") == "demo: nothing to change\n"


@pytest.mark.system
@pytest.mark.timeout(2 * LESSON_SECONDS)
def test_the_lesson_and_then_each_block_of_the_guides_work_as_printed(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal, ExitStack() as running:
        reader, began = Reader(terminal, running), perf_counter()
        reader.follow(LESSON)
        assert perf_counter() - began < LESSON_SECONDS
        for guide in CARRIED_OUT:
            reader.prepare(guide)
            reader.follow(GUIDES / f"{guide}.md")


def test_every_guide_with_commands_or_settings_is_carried_out() -> None:
    with_steps = {
        page.stem
        for page in GUIDES.glob("*.md")
        if {block.language for block in read_blocks(page)} & {"console", "sh", "toml"}
    }
    assert with_steps == {*CARRIED_OUT, *ELSEWHERE}
