"""Base of every contract suite: common fixtures, and protection against silently dropped rules."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Final, Generic, TypeVar

import pytest
import pytest_asyncio

from switchboard.plugin_sdk.provider import Configurable, Extension, Provider, ProviderError, ProviderSettings
from switchboard.plugin_sdk.testing.vendors import WAIT_SECONDS, find_closed_address, serve_limit, serve_nonsense
from switchboard.plugin_sdk.tools import AgentTool

AnyProvider = TypeVar("AnyProvider", bound=Provider[ProviderSettings])

VENDOR_SECONDS: Final = 20.0


class Contract:
    """A suite of rules. A plugin's tests subclass it and override the fixtures marked "Must be overridden".

    A rule that cannot be kept is overridden with a test marked `@pytest.mark.xfail(reason=…)`. Any other override of a
    rule is refused at collection, so that no rule is dropped silently.
    """

    # A plugin's repository may run pytest-asyncio in strict mode, in which unmarked async tests fail. Every rule is
    # async, because the mark on a plain function is a warning.
    pytestmark = pytest.mark.asyncio

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__.startswith("switchboard."):
            return
        suites = [base for base in cls.__mro__ if base.__module__.startswith("switchboard.")]
        for name, rule in [item for suite in suites for item in vars(suite).items() if item[0].startswith("test_")]:
            test = getattr(cls, name, None)
            marks = getattr(test, "pytestmark", [])
            if test is not rule and not any(mark.name == "xfail" and mark.kwargs.get("reason") for mark in marks):
                raise TypeError(
                    f"{cls.__qualname__}.{name} replaces a rule of the contract; "
                    "mark it xfail with a reason, or remove it"
                )


class SettingsRules(Contract):
    """Rules of every provider and every extension about its settings."""

    @pytest.fixture
    def configurable(self) -> Configurable:
        """The provider or the extension under test. Its contract overrides it."""
        raise NotImplementedError("subclass the contract of a capability")

    async def test_it_has_a_name_and_a_title(self, configurable: Configurable) -> None:
        """The API, tenant files, agents, and automations use the name; people read the title, and models read a tool's
        description. If this fails, set these class attributes.
        """
        assert configurable.name == configurable.name.strip().lower() != ""
        assert (configurable.description if isinstance(configurable, AgentTool) else configurable.title).strip()

    async def test_its_settings_refuse_unknown_keys(self, configurable: Configurable) -> None:
        """A typo in a tenant file must be reported. If this fails, make `Settings` a subclass of `ProviderSettings`."""
        assert issubclass(configurable.Settings, ProviderSettings)
        assert configurable.Settings.model_config.get("extra") == "forbid"

    async def test_its_settings_never_print_a_secret(self, configurable: Configurable) -> None:
        """Settings may end up in logs. If this fails, make every credential a `SecretStr`."""
        words = ("key", "secret", "token", "password")
        for name, field in configurable.Settings.model_fields.items():
            if any(word in name for word in words) and not name.startswith("public_"):
                assert "Secret" in str(field.annotation), f"{name} should be a SecretStr"


class ProviderContract(SettingsRules, Generic[AnyProvider]):
    """Rules of every provider. A plugin's test subclasses its capability's contract and overrides the fixture
    `provider`.
    """

    @pytest.fixture
    def configurable(self, provider: AnyProvider) -> AnyProvider:
        return provider

    @pytest.fixture
    def provider(self) -> AnyProvider:
        """The provider under test, created but not opened. Must be overridden, by a plain (not async) fixture."""
        raise NotImplementedError("override the fixture `provider` of this contract")

    @pytest_asyncio.fixture
    async def open_provider(self, provider: AnyProvider) -> AsyncIterator[AnyProvider]:
        """The provider, opened for the test and closed after it."""
        await provider.open()
        yield provider
        await provider.close()

    async def test_making_one_touches_nothing(self, provider: AnyProvider) -> None:
        """Instances are created while calls wait.

        If this fails, connect in `open()`, and allow `close()` without `open()`.
        """
        await type(provider)(provider.settings).close()

    async def test_check_accepts_working_settings(self, open_provider: AnyProvider) -> None:
        """`switchboard doctor` relies on `check()`.

        If this fails, the settings of your `provider` fixture do not work.
        """
        await open_provider.check()

    @pytest.fixture
    def create_at(self) -> Callable[[str], AnyProvider]:
        """Creates the provider with its vendor at another address, such as `http://127.0.0.1:4711`. Override it unless
        the provider has no vendor.
        """
        pytest.skip("the provider has no vendor; otherwise override the fixture `create_at`")

    async def use(self, provider: AnyProvider) -> None:
        """Use an open provider once, as a call does. The contract of each capability overrides it."""
        await provider.check()

    async def test_a_vendor_that_is_not_there_is_a_provider_error(
        self, create_at: Callable[[str], AnyProvider]
    ) -> None:
        """The organization's next provider is asked, and the error's message says what is wrong.

        If this fails, raise `ProviderError` from the errors of your HTTP or WebSocket library.
        """
        await self._expect_provider_error(create_at, await find_closed_address())

    async def test_nonsense_of_the_vendor_is_a_provider_error(self, create_at: Callable[[str], AnyProvider]) -> None:
        """Proxies answer with pages, and vendors change. A stray `KeyError` or `JSONDecodeError` says nothing to an
        operator.

        If this fails, raise `ProviderError` where you parse a response.
        """
        async with serve_nonsense() as address:
            await self._expect_provider_error(create_at, address)

    async def test_a_vendor_that_asks_to_wait_is_left_alone(self, create_at: Callable[[str], AnyProvider]) -> None:
        """Calls go to the organization's other providers as long as a vendor says (`Retry-After`).

        If this fails, read the header of a refusal with `switchboard.plugin_sdk.retries.read_retry_after`, and give the
        seconds to `ProviderError`, which must be retryable.
        """
        async with serve_limit() as address:
            error = await self._expect_provider_error(create_at, address)
        if error.code is not None and "429" in error.code:
            assert (error.retryable, error.retry_after_seconds) == (True, WAIT_SECONDS)

    async def _expect_provider_error(self, create_at: Callable[[str], AnyProvider], address: str) -> ProviderError:
        provider = create_at(address)
        try:
            async with asyncio.timeout(VENDOR_SECONDS):
                with pytest.raises(ProviderError) as caught:  # noqa: PT012  either of the two fails
                    await provider.open()
                    await self.use(provider)
        finally:
            await provider.close()
        assert caught.value.message.strip()
        return caught.value


class ExtensionContract(SettingsRules):
    """Rules of every extension about its settings."""

    @pytest.fixture
    def extension(self) -> Extension:
        """The extension under test, with its settings. The contract of each kind overrides it."""
        raise NotImplementedError("subclass the contract of a kind of extension")

    @pytest.fixture
    def configurable(self, extension: Extension) -> Extension:
        return extension

    async def test_its_settings_make_a_form(self, extension: Extension) -> None:
        """The dashboard's form is generated from their JSON schema. If this fails, use types that pydantic can
        describe.
        """
        assert json.loads(json.dumps(extension.Settings.model_json_schema()))["type"] == "object"

    async def test_it_is_created_without_arguments(self, extension: Extension) -> None:
        """The platform creates an instance without arguments, and then sets `settings`.

        If this fails, read `settings` in the methods and not in the constructor.
        """
        assert type(extension)().name == extension.name

    async def test_check_accepts_working_settings(self, extension: Extension) -> None:
        """`switchboard doctor` and the dashboard rely on `check()`.

        If this fails, set working `settings` in your fixture: `action.settings = CrmSettings(…)`.
        """
        assert isinstance(extension.settings, extension.Settings)
        await extension.check()
