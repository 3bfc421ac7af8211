"""Creation of provider instances: contained, and in the platform's process or in one of their own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from switchboard.engine.providers.containment import contain
from switchboard.engine.providers.models import OWN_PROCESS
from switchboard.engine.providers.plugin_processes.messages import Start
from switchboard.engine.providers.plugin_processes.plugin_process import (
    PluginProcess,
    PluginProcesses,
    derive_remote_class,
)
from switchboard.plugin_sdk import NetworkPolicy, Provider, ProviderError, ProviderSettings
from switchboard.plugin_sdk.registry import Capability, InvalidSettings, Plugin, Registry, parse_settings


@dataclass(frozen=True, slots=True)
class ProviderFactory:
    """Creates providers of the installed plugins."""

    registry: Registry
    data_dir: Path
    processes: PluginProcesses = field(default_factory=PluginProcesses)
    policy: NetworkPolicy = field(default_factory=NetworkPolicy)

    def create(
        self, capability: Capability, name: str, settings: Mapping[str, JsonValue], *, process: str
    ) -> Provider[ProviderSettings]:
        """Create an instance of a provider, not yet opened; `process` is a `ProcessMode`. Raises `ProviderError`."""
        kind = self.registry.find_provider_class(capability.base_class, name)
        plugin = self.registry.find_plugin(capability, name)
        if kind is None or plugin is None:
            raise ProviderError(
                f"this process has loaded no plugin that provides {capability.value} {name}; `switchboard plugins "
                "list` says if a restart is needed",
                retryable=False,
            )
        try:
            parsed = parse_settings(kind.Settings, settings)
            if process == OWN_PROCESS:
                start = self._write_start(capability, kind, plugin, settings)
                kind = derive_remote_class(capability, kind, PluginProcess(start, kind.title, self.processes))
            provider = contain(kind, plugin)(parsed)
        except InvalidSettings as error:
            raise refuse_settings(capability, name, error) from error
        provider.data_dir, provider.network_policy = self.data_dir, self.policy
        return provider

    def _write_start(
        self,
        capability: Capability,
        kind: type[Provider[ProviderSettings]],
        plugin: Plugin,
        settings: Mapping[str, JsonValue],
    ) -> Start:
        return Start(
            plugin=plugin.name,
            module=plugin.module,
            distribution=plugin.distribution,
            version=plugin.version,
            capability=capability.value,
            # The process loads one plugin, so its providers have their plain names.
            name=kind.name.rpartition("/")[2],
            settings=dict(settings),
            data_dir=str(self.data_dir.resolve()),
            allowed_networks=[str(network) for network in self.policy.allowed_networks],
            own_url=self.policy.own_url,
            memory_bytes=self.processes.limits.memory_bytes,
            log_level=self.processes.log_level,
        )


def refuse_settings(capability: Capability, name: str, error: Exception) -> ProviderError:
    """Return the failure of a provider whose settings are not usable."""
    return ProviderError(f"the settings of {capability.value} {name} cannot be used: {error}", retryable=False)
