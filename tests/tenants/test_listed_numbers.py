"""Phone numbers of tenant files: checked, compared, entered once, exported, and never taken from others."""

from pathlib import Path

import pytest
from switchboard.apps.tenant_files.apply import FileRefused, apply_tenant_file, compare_tenant_file
from switchboard.apps.tenant_files.export import export_tenant_file
from switchboard.apps.tenant_files.files import TenantFile, read_file
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity.service import OPERATOR
from switchboard.runtime import Runtime

from tests.fixtures.app import Organizations, fresh_number
from tests.fixtures.json_access import objects_at

SIP = """
[[telephony]]
provider = "sip"

[[telephony.trunks]]
name = "office"
hosts = ["pbx.example.com"]
"""


def write_file(folder: Path, *numbers: str, name: str = "acme", carrier: str = SIP) -> Path:
    path = folder / f"{name}-{folder.name}.toml"
    blocks = "".join(f'\n[[phone_numbers]]\nphone_number = "{number}"\n' for number in numbers)
    path.write_text(f'name = "Acme"\n{carrier}{blocks}')
    return path


@pytest.mark.parametrize(
    ("numbers", "carrier", "fault"),
    [
        (("2125550100",), SIP, "phone_numbers.0.phone_number: must be an E.164 phone number"),
        (("+12125550100", "+12125550100"), SIP, "phone_numbers.1.phone_number: +12125550100 is listed twice"),
        (("+12125550100",), '[[telephony]]\nprovider = "loopback"\n', "phone_numbers: is for carriers that sell no"),
        (("+12125550100",), "", "phone_numbers: is for carriers that sell no numbers"),
    ],
)
def test_each_error_has_its_key(
    tmp_path: Path, registry: Registry, numbers: tuple[str, ...], carrier: str, fault: str
) -> None:
    (found,) = read_file(write_file(tmp_path, *numbers, carrier=carrier), registry).faults
    assert fault in str(found)


def test_other_keys_are_refused(tmp_path: Path, registry: Registry) -> None:
    path = write_file(tmp_path)
    path.write_text(path.read_text() + '\n[[phone_numbers]]\nphone_number = "+12125550100"\nagent = "Ada"\n')
    (fault,) = read_file(path, registry).faults
    assert fault.key == "phone_numbers.0.agent"
    path.write_text(path.read_text().partition("[[phone_numbers]]")[0].replace("name", "phone_numbers = 5\nname", 1))
    assert [fault.key for fault in read_file(path, registry).faults] == ["phone_numbers"]


async def test_numbers_are_entered_once_and_stay(
    tmp_path: Path, runtime: Runtime, organizations: Organizations
) -> None:
    first, second = fresh_number(), fresh_number()
    parts = (runtime.database, runtime.registry, runtime.keyring)

    def read(*numbers: str) -> TenantFile:
        return read_file(write_file(tmp_path, *numbers), runtime.registry)

    assert f"enter phone number {first}" in await compare_tenant_file(*parts, read(first))
    organization_id, changes = await apply_tenant_file(*parts, read(first))
    assert f"enter phone number {first}" in changes
    caller = await organizations.create_key(organization_id, scopes=["phone-numbers:read", "phone-numbers:write"])
    (entered,) = objects_at((await caller.get("/v1/phone-numbers")).json, "items")
    assert (entered["phone_number"], entered["status"]) == (first, "active")
    renamed = await caller.send("PUT", f"/v1/phone-numbers/{entered['id']}", {"friendly_name": "Front desk"})
    assert renamed.status == 200, renamed.body
    assert await compare_tenant_file(*parts, read(first)) == []
    assert await compare_tenant_file(*parts, read()) == [], "a number that is not listed stays"
    assert (await apply_tenant_file(*parts, read(first, second)))[1] == [f"enter phone number {second}"]
    async with runtime.database.write(organization_id, actor=OPERATOR) as session:
        exported = await export_tenant_file(session, runtime.registry, runtime.keyring)
    path = tmp_path / f"acme-{tmp_path.name}.toml"
    path.write_text(exported)
    again = read_file(path, runtime.registry)
    assert [(each.phone_number, each.friendly_name) for each in again.numbers] == [
        (first, "Front desk"),
        (second, None),
    ]
    assert await compare_tenant_file(*parts, again) == []


async def test_a_number_of_another_organization_refuses_the_file(tmp_path: Path, runtime: Runtime) -> None:
    number, other = fresh_number(), fresh_number()
    parts = (runtime.database, runtime.registry, runtime.keyring)
    await apply_tenant_file(*parts, read_file(write_file(tmp_path, number), runtime.registry))
    rival = read_file(write_file(tmp_path, other, number, name="rival"), runtime.registry)
    reason = f"the phone number {number} belongs to another organization of this installation"
    assert (await compare_tenant_file(*parts, rival))[-1] == f"refused: {reason}"
    with pytest.raises(FileRefused) as refused:
        await apply_tenant_file(*parts, rival)
    assert reason in str(refused.value)
    assert "create organization Acme" in await compare_tenant_file(*parts, rival), "nothing was kept"
