"""Turn detector of organizations that have chosen none. It judges calls with people; nothing about it is stored."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from switchboard.engine.providers.models import (
    SECRETS_LABEL,
    SHARED_PROCESS,
    ProviderConfiguration,
    StoredConfiguration,
)
from switchboard.foundation.keyring import KeyRing
from switchboard.plugin_sdk import (
    Provider,
    ProviderSettings,
    SimulatedCarrier,
    SpeechToTextProvider,
    TelephonyProvider,
    TurnDetector,
)
from switchboard.plugin_sdk.registry import Capability, Registry

NEVER_SAVED: Final = datetime.min.replace(tzinfo=UTC)
"""Version of settings that nobody has saved."""


def find_default_detector(
    registry: Registry, providers: Iterable[ProviderConfiguration | StoredConfiguration]
) -> type[TurnDetector[ProviderSettings]] | None:
    """Return the detector that judges calls over these providers of an organization, although it is not among them.

    None if one of them is a turn detector, if no plugin has a default one, or if the callers are not people: the
    carriers simulate them, or the transcribers are for demonstrations.
    """
    names: dict[str, list[str]] = {}
    for each in providers:
        names.setdefault(each.capability, []).append(each.name)
    carriers = [registry.find_provider_class(TelephonyProvider, name) for name in names.get(Capability.TELEPHONY, ())]
    transcribers = [
        registry.find_provider_class(SpeechToTextProvider, name) for name in names.get(Capability.SPEECH_TO_TEXT, ())
    ]
    if (
        Capability.TURN_DETECTOR in names
        or all(kind is None or issubclass(kind, SimulatedCarrier) for kind in carriers)
        or all(kind is None or kind.for_demonstrations for kind in transcribers)
    ):
        return None
    return get_default_detector(registry)


def get_default_detector(registry: Registry) -> type[TurnDetector[ProviderSettings]] | None:
    """Return the default detector of the installed plugins; None without one."""
    return next((kind for kind in registry.list_provider_classes(TurnDetector) if kind.is_default), None)


def configure_default(
    kind: type[Provider[ProviderSettings]], capability: Capability, organization_id: UUID, keyring: KeyRing
) -> StoredConfiguration:
    """Return an organization's configuration of a provider that it has not configured, with its default settings."""
    label = SECRETS_LABEL.format(id=organization_id, organization_id=organization_id)
    return StoredConfiguration(
        id=organization_id,
        organization_id=organization_id,
        capability=capability.value,
        name=kind.name,
        process=SHARED_PROCESS,
        settings={},
        secrets=keyring.encrypt("{}", label),
        updated_at=NEVER_SAVED,
    )
