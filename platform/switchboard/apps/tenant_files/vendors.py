"""Check of a tenant file's providers with their vendors: credentials, addresses, and models, at no cost."""

import asyncio
from pathlib import Path
from typing import Final

from switchboard.apps.tenant_files.files import FileError, TenantFile
from switchboard.engine.providers.configuration import ProviderSpec
from switchboard.engine.providers.instances import create_provider
from switchboard.plugin_sdk import Provider, ProviderError, ProviderSettings
from switchboard.plugin_sdk.registry import Registry

CHECK_SECONDS: Final = 20.0
"""Time for one provider to open and to answer."""


async def check_vendors(file: TenantFile, registry: Registry, data_dir: Path) -> list[FileError]:
    """Ask every valid provider of the file whether it works, all at once; return an error for each that does not."""
    messages = await asyncio.gather(*(_check_vendor(spec, registry, data_dir) for spec in file.providers))
    return [
        file.create_error(file.provider_keys[spec.capability, spec.name], message)
        for spec, message in zip(file.providers, messages, strict=True)
        if message is not None
    ]


async def _check_vendor(spec: ProviderSpec, registry: Registry, data_dir: Path) -> str | None:
    kind = registry.find_provider_class(spec.capability.base_class, spec.name)
    settings = {**(kind.initial_settings() if kind else {}), **spec.settings}
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await _open_and_check(create_provider(registry, spec.capability, spec.name, settings, data_dir))
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
