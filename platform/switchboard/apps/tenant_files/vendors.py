"""Check of a tenant file's blocks with their vendors: credentials, addresses, and models, at no cost."""

import asyncio
from typing import Final

from switchboard.apps.tenant_files.files import FileError, TenantFile
from switchboard.engine.providers.checks import check_extension
from switchboard.engine.providers.configuration import ProviderSpec
from switchboard.engine.providers.extensions import ConfiguredExtension
from switchboard.engine.providers.factory import ProviderFactory
from switchboard.plugin_sdk import Extension, Provider, ProviderError, ProviderSettings
from switchboard.plugin_sdk.registry import Capability, parse_settings

CHECK_SECONDS: Final = 20.0
"""Time for one provider to open and to answer."""


async def check_vendors(file: TenantFile, factory: ProviderFactory) -> list[FileError]:
    """Check every valid provider and extension of the file, all at once; return an error for each that fails."""
    messages = await asyncio.gather(*(_check_vendor(spec, factory) for spec in file.providers))
    return [
        file.create_error(file.provider_keys[spec.capability, spec.name], message)
        for spec, message in zip(file.providers, messages, strict=True)
        if message is not None
    ]


async def _check_vendor(spec: ProviderSpec, factory: ProviderFactory) -> str | None:
    kind = factory.registry.find_class(spec.capability, spec.name)
    settings = {**(kind.initial_settings() if kind else {}), **spec.settings}
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            if isinstance(spec.capability, Capability):
                await _open_and_check(factory.create(spec.capability, spec.name, settings, process=spec.process))
            elif kind is not None and issubclass(kind, Extension):
                await check_extension(ConfiguredExtension(kind, parse_settings(kind, settings)))
    except ProviderError as error:
        return error.message
    except TimeoutError:
        return f"{spec.name} did not answer within {CHECK_SECONDS:.0f} seconds"
    return None


async def _open_and_check(provider: Provider[ProviderSettings]) -> None:
    await provider.open()
    try:
        await provider.check()
    finally:
        await provider.close()
