"""The embedded default: real PostgreSQL and Redis servers, from Python wheels, as child processes under the data directory."""

from switchboard.embedded.data_directory import DataDirectory, DirectoryInUse
from switchboard.embedded.servers import EmbeddedError, EmbeddedServers

__all__ = ["DataDirectory", "DirectoryInUse", "EmbeddedError", "EmbeddedServers"]
