"""Attack a running instance over HTTP, and print what was refused and what was not: `make attack`."""

import asyncio
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tests.attack.attacks import ATTACKS
from tests.attack.credentials import Credentials, create_credentials
from tests.attack.instance import run_instance, run_later_server
from tests.attack.report import AttackResult, render_table
from tests.attack.scene import OpenLaterServer, open_scene, run_attacks


@click.command()
@click.option("--url", default="", help="Address of the instance; without it, the attacks start one of their own.")
@click.option(
    "--credentials",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File that `python -m tests.attack.credentials` printed for the instance at --url.",
)
@click.argument("names", nargs=-1, type=click.Choice(list(ATTACKS)))
def main(url: str, file: Path | None, names: tuple[str, ...]) -> None:
    """Run the attacks of these NAMES, or all. The exit status is 1 if there is a finding."""
    if bool(url) != (file is not None):
        raise click.UsageError("--url and --credentials belong together")
    chosen = [(name, attack) for name, attack in ATTACKS.items() if not names or name in names]

    async def attack(
        url: str, credentials: Credentials, open_later_server: OpenLaterServer | None = None
    ) -> list[AttackResult]:
        async with open_scene(url, credentials, open_later_server) as scene:
            return await run_attacks(scene, chosen)

    async def attack_own_instance() -> list[AttackResult]:
        with TemporaryDirectory() as folder:
            async with run_instance(Path(folder)) as (own_url, operator):
                later = partial(run_later_server, Path(folder), own_url, operator)
                return await attack(own_url, await asyncio.to_thread(create_credentials, operator.ask), later)

    if file is None:
        results = asyncio.run(attack_own_instance())
    else:
        results = asyncio.run(attack(url, Credentials.model_validate_json(file.read_text())))
    click.echo(render_table(results))
    sys.exit(any(result.findings for result in results))


if __name__ == "__main__":
    main()
