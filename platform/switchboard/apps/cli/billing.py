"""`billing`: an organization's balance."""

from decimal import Decimal, InvalidOperation
from uuid import UUID

import click

from switchboard.apps.cli.output import print_result, run_with_json
from switchboard.apps.cli.session import open_runtime
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.resources.billing import ledger
from switchboard.resources.identity import service as identity

LARGEST = Decimal(10_000_000)


class _Dollars(click.ParamType[Decimal]):
    name = "dollars"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        try:
            amount = Decimal(str(value)).quantize(Decimal("0.000001"))
        except InvalidOperation:
            self.fail(f"{value} is not an amount like 25 or 12.50", param, ctx)
        if not amount.is_finite() or not amount or abs(amount) > LARGEST:
            self.fail(f"{value} is out of range", param, ctx)
        return amount


@click.group()
def billing() -> None:
    """Balances."""


@billing.command("credit")
@click.option("--org", "organization_id", type=UUID, required=True)
@click.option(
    "--amount", type=_Dollars(), required=True, help="US dollars; a negative amount charges the organization."
)
@click.option("--note", default="", help="Stored with the entry.")
@run_with_json
async def credit(organization_id: UUID, amount: Decimal, note: str, as_json: bool) -> None:
    """Top up an organization's balance."""
    async with (
        open_runtime(organization_id) as runtime,
        runtime.database.write(organization_id, actor=identity.OPERATOR) as session,
    ):
        balance = await ledger.credit_account(session, amount, note=note)
        record_audit(session, AuditAction.BILLING_CREDITED, organization_id)
    print_result({"id": str(organization_id), "balance": float(balance)}, as_json=as_json)


@billing.command("balance")
@click.option("--org", "organization_id", type=UUID, required=True)
@run_with_json
async def show_balance(organization_id: UUID, as_json: bool) -> None:
    """Show an organization's balance."""
    async with open_runtime(organization_id) as runtime, runtime.database.read(organization_id) as session:
        balance, _ = await ledger.get_account_balance(session)
    print_result({"id": str(organization_id), "balance": float(balance)}, as_json=as_json)
