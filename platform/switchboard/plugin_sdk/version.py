"""Version of the plugin API. docs/plugins/deprecation.md has the rules by which it changes."""

from typing import Final

API_VERSION: Final = 1
"""Version of the plugin API: increased by each change that an existing plugin could notice as a failure.

A plugin declares the version that it was written for, `PLUGIN_API_VERSION = 1`, in the module that its entry point
names.
"""

OLDEST_API_VERSION: Final = 1
"""Oldest version of the plugin API whose plugins still load."""
