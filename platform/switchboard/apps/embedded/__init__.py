"""The embedded default: real PostgreSQL and Redis servers, from Python wheels, as child processes under the data
directory.
"""

from switchboard.apps.embedded.data_directory import DataDirectory, DirectoryInUse
from switchboard.apps.embedded.servers import EmbeddedError, EmbeddedServers

__all__ = ["DataDirectory", "DirectoryInUse", "EmbeddedError", "EmbeddedServers"]
