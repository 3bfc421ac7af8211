"""The dashboard's blueprint with all pages: each module below `pages` adds its own."""

from importlib import import_module
from pkgutil import walk_packages

from switchboard.apps.dashboard import pages
from switchboard.apps.dashboard.blueprint import dashboard

for module in walk_packages(pages.__path__, f"{pages.__name__}."):
    import_module(module.name)

__all__ = ["dashboard"]
