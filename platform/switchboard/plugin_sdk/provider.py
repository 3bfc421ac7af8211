"""Base class, settings, and errors of every provider, whatever its capability."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import ClassVar, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue

from switchboard.plugin_sdk.public_addresses import NetworkPolicy

OPERATOR_ONLY: Final[dict[str, JsonValue]] = {"operator_only": True}
"""`json_schema_extra` of a setting that decides where requests or files go.

Only the operator of the installation sets it, in a tenant file or as a superadmin: an owner of an organization could
otherwise reach addresses that only this machine can reach. Settings with a URL type are operator-only without it.
"""


def ask_with_rows(rows: str, *, key: str, label: str, after: str) -> dict[str, JsonValue]:
    """Return the `json_schema_extra` of a setting that is a dict of secrets, one for each row of the setting `rows`.

    `key` is the field of the rows that the dict's keys repeat. The dashboard then asks for each secret in its row, with
    this label, after the field `after`.
    """
    return {"secrets_of_rows": {"rows": rows, "key": key, "label": label, "after": after}}


class ProviderSettings(BaseModel):
    """Settings of a provider or an extension, as written in a tenant file.

    Secrets are `SecretStr`: encrypted at rest, never shown.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


class Configurable:
    """A class of a plugin that each organization configures by itself.

    `name` identifies the class in tenant files, `title` is its display name, and `Settings` the model of its settings.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    Settings: ClassVar[type[ProviderSettings]] = ProviderSettings

    @classmethod
    def initial_settings(cls) -> dict[str, str]:
        """Return settings to generate once, when an organization first configures this class.

        For secrets of the platform's own, not the vendor's.
        """
        return {}


class ProviderError(Exception):
    """A provider refused or failed.

    `message` is the provider's own text and becomes the API's `detail` (502 `provider_error`). `code` is the provider's
    own error code. `retryable`: the same request may succeed later, or with the organization's next provider.
    `retry_after_seconds`: the provider asks not to be asked again before (`Retry-After`, RFC 9110, section 10.2.3);
    None if it does not say.
    """

    def __init__(
        self, message: str, *, code: str | None = None, retryable: bool = True, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds


class UnsupportedRequest(ProviderError):
    """The provider does not have what is asked for."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="unsupported", retryable=False)


class OutcomeUnknown(ProviderError):
    """The provider may have carried out a request without confirming it, so nobody repeats the request.

    Only for actions that must not happen twice: a call or a text message. `retryable` has no meaning here.
    """


SettingsT_co = TypeVar("SettingsT_co", bound=ProviderSettings, covariant=True)


class Provider(Configurable, ABC, Generic[SettingsT_co]):
    """A provider of one capability. One instance serves one organization and all of its calls concurrently.

    `name` identifies the provider in the API and in tenant files (`llm_provider = "openai"`). It has no slash: if
    another plugin has the name too, `plugin/name` identifies the provider. `title` is the display name. Creating an
    instance must be cheap and touch nothing outside the process: `open()` connects, `close()` releases. When its
    settings change, an instance is replaced, never modified.
    """

    default_model: ClassVar[str | None] = None
    """Default model, if it is known: used if neither the user of the provider nor its settings name a model."""
    model_setting: ClassVar[str] = "model"
    """Name of the setting with the model for users of the provider who name no model."""
    model_ends: ClassVar[Mapping[str, date]] = {}
    """Day on which the vendor ends each of these models, as announced when this version of the provider was released.
    """

    data_dir: Path = Path(".switchboard")
    """Folder on this machine for data that must outlive the process. The platform sets it to DATA_DIR before `open()`.
    """
    network_policy: NetworkPolicy = NetworkPolicy()
    """The operator's rules for addresses that come from outside, for a `PublicHttpClient`. The platform sets it before
    `open()`.
    """

    def __init__(self, settings: SettingsT_co) -> None:
        self.settings = settings

    async def open(self) -> None:
        """Get ready to serve. Called once, before any other method.

        Raises `ProviderError` if the provider cannot serve at all.
        """

    async def close(self) -> None:
        """Release all resources. Called once, as the last method.

        An instance that nobody has used for ten minutes is closed; another one is created for the next use.
        """

    def is_busy(self) -> bool:
        """Return whether something goes on in the instance that no method waits for, so that it stays open.

        Not asked of an instance in a process of its own.
        """
        return False

    @abstractmethod
    async def check(self) -> None:
        """Check the settings (for example that the credential is accepted) without spending money.

        Raises `ProviderError` with a message that an operator can act on. Used by `switchboard doctor`, `tenants
        check`, and the dashboard.
        """

    async def find_model_ends(self, models: Sequence[str]) -> Mapping[str, date]:
        """Return the day on which the vendor ends each of these models; a model without an announced end is left out.

        Called after `check`, with the models that are in use. Override it to ask a vendor whose list of models has
        such days, without spending money. Raises `ProviderError`.
        """
        return {model: self.model_ends[model] for model in models if model in self.model_ends}


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
