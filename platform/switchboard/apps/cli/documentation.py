"""`docs` and `routes`: what is documented from the code itself."""

from pathlib import Path

import click

from switchboard.apps.cli import generated_pages


@click.command()
def docs() -> None:
    """Write the generated pages of docs/ anew."""
    for name, page in generated_pages.pages().items():
        path = Path("docs") / name
        path.write_text(page)
        click.echo(f"wrote {path}")


@click.command()
def routes() -> None:
    """List every endpoint with the place of its code."""
    click.echo(generated_pages.api_map())
