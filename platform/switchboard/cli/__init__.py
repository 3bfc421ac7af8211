"""`switchboard`: the operator's command line."""

from switchboard.cli.main import main

__all__ = ["main"]
