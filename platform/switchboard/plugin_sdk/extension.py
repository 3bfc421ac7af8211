"""Base class of actions, tools, event watchers, and detectors of private data: settings per organization."""

from typing import ClassVar

from switchboard.plugin_sdk.provider import Configurable, ProviderSettings


class Extension(Configurable):
    """A part of a plugin that may have settings: an automation action, an agent tool, an event watcher, or
    a detector of private data.

    The platform sets `settings` after it has created an instance and before it calls a method. A subclass with
    `Settings` repeats the attribute with their type: `settings: CrmSettings`. If a setting is required, an organization
    without it is not offered the extension. An instance serves one organization.
    """

    settings: ProviderSettings = ProviderSettings()
    origin: ClassVar[tuple[str, str]] = ("-", "-")
    """Distribution and version of the plugin, for the log and metrics. The platform sets it when it loads the class."""

    async def check(self) -> None:
        """Check the settings (for example that the credential is accepted) without changing anything at the vendor.

        Raises `ProviderError` with a message that an operator can act on. Used by `switchboard doctor` and the
        dashboard.
        """
