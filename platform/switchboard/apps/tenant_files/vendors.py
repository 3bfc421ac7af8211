"""Check of a tenant file's blocks with their vendors: credentials, addresses, and models, at no cost."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from switchboard.apps.tenant_files.files import FileError, TenantFile
from switchboard.engine.providers.checks import check_extension
from switchboard.engine.providers.configuration import ProviderSpec
from switchboard.engine.providers.factory import ProviderFactory
from switchboard.engine.providers.instances import ConfiguredExtension
from switchboard.engine.providers.model_ends import ModelEnd, list_used_models, select_due_ends
from switchboard.plugin_sdk import Extension, Provider, ProviderError, ProviderSettings
from switchboard.plugin_sdk.registry import Capability, parse_settings

CHECK_SECONDS: Final = 20.0
"""Time for one provider to open and to answer."""


@dataclass(frozen=True, slots=True)
class VendorAnswers:
    """Findings about a tenant file's blocks: what does not work, and what will not for long."""

    faults: list[FileError]
    warnings: list[FileError]


async def check_vendors(file: TenantFile, factory: ProviderFactory) -> VendorAnswers:
    """Check every valid provider and extension of the file, all at once.

    A block that fails is a fault. A block whose model, or whose provider's default model, ends soon is a warning.
    """
    answers = VendorAnswers([], [])
    found = await asyncio.gather(*(_check_vendor(spec, factory) for spec in file.providers))
    for spec, result in zip(file.providers, found, strict=True):
        key = file.provider_keys[spec.capability, spec.name]
        if isinstance(result, str):
            answers.faults.append(file.create_error(key, result))
        else:
            answers.warnings.extend(file.create_error(key, end.describe()) for end in result)
    return answers


async def _check_vendor(spec: ProviderSpec, factory: ProviderFactory) -> str | list[ModelEnd]:
    """Return the fault of a block, or the ends of its models."""
    kind = factory.registry.find_class(spec.capability, spec.name)
    settings = {**(kind.initial_settings() if kind else {}), **spec.settings}
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            if isinstance(spec.capability, Capability):
                provider = factory.create(spec.capability, spec.name, settings, process=spec.process)
                models = list_used_models(kind, settings, ()) if kind is not None and issubclass(kind, Provider) else []
                return await _open_and_check(provider, models)
            if kind is not None and issubclass(kind, Extension):
                await check_extension(ConfiguredExtension(kind, parse_settings(kind.Settings, settings)))
    except ProviderError as error:
        return error.message
    except TimeoutError:
        return f"{spec.name} did not answer within {CHECK_SECONDS:.0f} seconds"
    return []


async def _open_and_check(provider: Provider[ProviderSettings], models: Sequence[str]) -> list[ModelEnd]:
    await provider.open()
    try:
        await provider.check()
        return select_due_ends(await provider.find_model_ends(models)) if models else []
    finally:
        await provider.close()
