"""`python -m switchboard`."""

from switchboard.cli import main

main()
