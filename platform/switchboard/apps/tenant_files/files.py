"""Tenant files: one TOML file per organization, with the line and key of each error."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

from pydantic import JsonValue, ValidationError

from switchboard.apps.tenant_files import phone_numbers
from switchboard.apps.tenant_files.lines import find_line, find_line_numbers
from switchboard.apps.tenant_files.policy_faults import list_policy_faults
from switchboard.engine.providers.configuration import (
    ProviderSpec,
    UnknownProvider,
    find_process_fault,
    find_secret_settings,
    require_class,
)
from switchboard.engine.providers.models import SHARED_PROCESS, ProcessMode
from switchboard.plugin_sdk.registry import (
    CAPABILITIES,
    AnyCapability,
    Capability,
    ExtensionKind,
    InvalidSettings,
    Registry,
    parse_settings,
)
from switchboard.resources.identity.policy import Policy
from switchboard.resources.phone_numbers.schemas import EnteredNumber

OWN_KEYS = ("name", "timezone", phone_numbers.KEY)


@dataclass(frozen=True, slots=True)
class FileError:
    path: Path
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.key}: {self.message}"


@dataclass(slots=True)
class TenantFile:
    """A parsed file; invalid parts are left out."""

    path: Path
    name: str = ""
    timezone: str = "UTC"
    policy: Policy = field(default_factory=Policy)
    providers: list[ProviderSpec] = field(default_factory=list)
    numbers: list[EnteredNumber] = field(default_factory=list)
    faults: list[FileError] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    """Line of each key, by its dotted path (`llm.0.api_key`)."""
    provider_keys: dict[tuple[AnyCapability, str], str] = field(default_factory=dict)
    """Dotted path of the block of each provider and extension, by capability and name."""

    @property
    def slug(self) -> str:
        """The organization's slug: the file's name."""
        return self.path.stem

    def create_error(self, key: str, message: str) -> FileError:
        return FileError(self.path, find_line(self.lines, key), key, message)


def read_folder(folder: Path, registry: Registry, environment: Mapping[str, str] = os.environ) -> list[TenantFile]:
    """Read every `*.toml` of a folder, in the order of their names."""
    return [read_file(path, registry, environment) for path in sorted(folder.glob("*.toml"))]


def read_file(path: Path, registry: Registry, environment: Mapping[str, str] = os.environ) -> TenantFile:
    """Read one file. Secrets are references, `{ env = "NAME" }` or `{ file = "path" }`, and are resolved here."""
    return _Reader(path, registry, environment).read()


class _Reader:
    def __init__(self, path: Path, registry: Registry, environment: Mapping[str, str]) -> None:
        self._file = TenantFile(path)
        self._registry = registry
        self._environment = environment

    def read(self) -> TenantFile:
        try:
            text = self._file.path.read_text()
            self._file.lines = find_line_numbers(text)
            content = tomllib.loads(text)
        except (OSError, UnicodeDecodeError) as error:
            return self._fault("file", str(error))
        except tomllib.TOMLDecodeError as error:
            self._file.faults.append(FileError(self._file.path, getattr(error, "lineno", 1), "syntax", str(error)))
            return self._file
        self._read_organization(content)
        for capability in Capability:
            self._read_providers(capability, content.get(capability.value, []))
        for kind in ExtensionKind:
            self._read_extensions(kind, content.get(kind.value, {}))
        self._read_numbers(content.get(phone_numbers.KEY, []))
        return self._file

    def _read_organization(self, content: dict[str, Any]) -> None:
        name, timezone = content.get("name"), content.get("timezone", "UTC")
        if not isinstance(name, str) or not 0 < len(name.strip()) <= 255:
            self._fault("name", "an organization needs a name of 1 to 255 characters")
        else:
            self._file.name = name.strip()
        if timezone not in available_timezones():
            self._fault("timezone", f"{timezone} is not an IANA time zone")
        else:
            self._file.timezone = timezone
        rest = {key: value for key, value in content.items() if key not in (*OWN_KEYS, *CAPABILITIES)}
        try:
            self._file.policy = Policy.model_validate(rest)
        except ValidationError as error:
            for item in error.errors(include_url=False, include_context=False, include_input=False):
                self._fault(".".join(map(str, item["loc"])), item["msg"])
            return
        detectors = content.get(ExtensionKind.PRIVATE_DATA_DETECTOR.value, {})
        for key, message in list_policy_faults(self._file.policy, self._registry, detectors):
            self._fault(key, message)

    def _read_providers(self, capability: Capability, tables: object) -> None:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._fault(capability.value, f"write providers as [[{capability.value}]]")
            return
        for index, table in enumerate(tables):
            self._read_provider(capability, f"{capability.value}.{index}", dict(table))

    def _read_provider(self, capability: Capability, key: str, table: dict[str, Any]) -> None:
        name = table.pop("provider", None)
        if not isinstance(name, str):
            self._fault(key, 'a provider needs `provider = "name"`')
            return
        if any((wanted.capability, wanted.name) == (capability, name) for wanted in self._file.providers):
            self._fault(f"{key}.provider", f"{name} is listed twice")
            return
        process = table.pop("process", SHARED_PROCESS)
        if fault := find_process_fault(capability, process):
            self._fault(f"{key}.process", fault)
            return
        self._read_settings(capability, name, key, f"{key}.provider", table, process=process)

    def _read_extensions(self, kind: ExtensionKind, tables: object) -> None:
        if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
            self._fault(kind.value, f"write settings as [{kind.value}.NAME]")
            return
        for name, table in tables.items():
            key = f"{kind.value}.{name}"
            self._read_settings(kind, name, key, key, table)

    def _read_numbers(self, tables: object) -> None:
        numbers, faults = phone_numbers.read_numbers(tables)
        for key, message in faults:
            self._fault(key, message)
        if fault := phone_numbers.find_carrier_fault(numbers, self._file.providers, self._registry):
            self._fault(phone_numbers.KEY, fault)
        self._file.numbers = numbers

    def _read_settings(
        self,
        capability: AnyCapability,
        name: str,
        key: str,
        name_key: str,
        table: dict[str, Any],
        *,
        process: ProcessMode = SHARED_PROCESS,
    ) -> None:
        before = len(self._file.faults)
        settings = {setting: self._resolve(f"{key}.{setting}", value) for setting, value in table.items()}
        wanted = ProviderSpec(capability, name, settings, process)
        try:
            kind = require_class(self._registry, wanted)
        except UnknownProvider as error:
            self._fault(name_key, str(error))
            return
        for setting in find_secret_settings(kind.Settings) & table.keys():
            if isinstance(table[setting], str):
                self._fault(f"{key}.{setting}", 'is a secret: write { env = "NAME" } or { file = "path" }')
        if len(self._file.faults) > before:
            return
        try:
            parse_settings(kind.Settings, {**kind.initial_settings(), **settings})
        except InvalidSettings as error:
            for setting, message in error.faults:
                self._fault(f"{key}.{setting}", message)
            return
        self._file.providers.append(wanted)
        self._file.provider_keys[capability, name] = key

    def _resolve(self, key: str, value: Any) -> JsonValue:
        if isinstance(value, list):
            return [self._resolve(f"{key}.{index}", part) for index, part in enumerate(value)]
        if not isinstance(value, dict):
            return value  # type: ignore[no-any-return]
        if set(value) not in ({"env"}, {"file"}):
            return {name: self._resolve(f"{key}.{name}", part) for name, part in value.items()}
        if "env" in value:
            if not (found := self._environment.get(str(value["env"]), "")):
                self._fault(key, f"the environment variable {value['env']} is not set")
            return found
        try:
            return (self._file.path.parent / str(value["file"])).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            self._fault(key, f"the file {value['file']} cannot be read: {type(error).__name__}")
            return ""

    def _fault(self, key: str, message: str) -> TenantFile:
        self._file.faults.append(self._file.create_error(key, message))
        return self._file
