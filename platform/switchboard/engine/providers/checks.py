"""Checks of configured providers and extensions, for `doctor` and the dashboard."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import (
    ConfiguredExtension,
    ExtensionNotAvailable,
    Extensions,
    Providers,
    configure_extensions,
)
from switchboard.engine.providers.turn_prediction import check_prediction_time
from switchboard.foundation.observability.extension_faults import record_extension_fault
from switchboard.plugin_sdk import (
    CheckedPart,
    Extension,
    ProviderError,
    ProviderSettings,
    TextToSpeechProvider,
    TextToSpeechSettings,
    TrunkCarrier,
    TurnDetector,
)
from switchboard.plugin_sdk.registry import AnyCapability, Capability

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SettingsCheck:
    """Asks a provider or an extension whether an organization's settings work."""

    providers: Providers
    extensions: Extensions

    async def check(self, organization_id: UUID, capability: AnyCapability, name: str) -> Sequence[CheckedPart]:
        """Check the settings. Return the result, good or bad, of each trunk of a carrier over trunks, and of a
        measurement of a turn detector's time.

        Otherwise raise `ProviderError` if the settings do not work, with a message for the operator.
        """
        if isinstance(capability, Capability):
            async with self.providers.use(organization_id, capability.base_class, name) as provider:
                if isinstance(provider, TrunkCarrier):
                    return await provider.check_parts()
                await provider.check()
                if isinstance(provider, TextToSpeechProvider):
                    await check_voices(provider)
                if isinstance(provider, TurnDetector):
                    return [await check_prediction_time(provider)]
            return ()
        extension = self.extensions.registry.find_class(capability, name)
        if extension is None or not issubclass(extension, Extension):
            raise ProviderError(f"no plugin provides {capability.value} {name}; see `switchboard plugins list`")
        async with self.extensions.database.read(organization_id) as session:
            (configured,) = await configure_extensions(session, [extension])
        await check_extension(configured)
        return ()


async def check_voices(provider: TextToSpeechProvider[ProviderSettings]) -> None:
    """Raise `ProviderError` if a provider lacks a voice that its settings name for a language."""
    if not isinstance(provider.settings, TextToSpeechSettings):
        return
    for language, voice in provider.settings.voices.items():
        if not await provider.has_voice(voice):
            raise ProviderError(f"{provider.title} has no voice {voice} (voices.{language})", retryable=False)


async def check_extension(configured: ConfiguredExtension[Extension]) -> None:
    """Create an extension and check its settings. Raises `ProviderError`, whatever the plugin raises."""
    name = configured.extension.name
    try:
        await configured.create().check()
    except ProviderError:
        raise
    except ExtensionNotAvailable as error:
        raise ProviderError(error.message, retryable=False) from None
    except Exception as error:  # a plugin's check may raise anything
        record_extension_fault("extension broke", configured.extension, "check", error)
        raise ProviderError(f"{name} failed: {type(error).__name__} in check") from error
