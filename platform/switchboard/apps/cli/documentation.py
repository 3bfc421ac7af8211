"""`docs` and `routes`: documentation from the code."""

from pathlib import Path

import click

from switchboard.apps.cli import generated_pages


@click.command()
def docs() -> None:
    """Regenerate the generated pages of docs/."""
    for name, page in generated_pages.render_pages().items():
        path = Path("docs") / name
        path.write_text(page)
        click.echo(f"wrote {path}")


@click.command()
def routes() -> None:
    """List every endpoint with the location of its code."""
    click.echo(generated_pages.render_api_map())
