"""The demo organization, with an agent, a phone number, an API key, and a user.

Its providers need no account and are replaced in the dashboard. A `demo.toml` among the tenant files sets them instead.
"""

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from switchboard.apps.cli.output import Failure
from switchboard.apps.tenant_files.apply import apply_tenant_file
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.apps.tenant_files.files import TenantFile, read_file
from switchboard.foundation.database import Database, WriteSession, new_id
from switchboard.foundation.web.principal import SCOPES
from switchboard.resources.agents.publishing import AgentPublisher
from switchboard.resources.agents.queries import list_agents_by_age
from switchboard.resources.agents.schemas import AgentCreate
from switchboard.resources.appointments.calendars import CalendarConnections
from switchboard.resources.appointments.models import LOCAL, AppointmentType
from switchboard.resources.appointments.schemas import CalendarCreate
from switchboard.resources.appointments.type_settings import AppointmentTypeSettings, BookingHours
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.authentication import digest
from switchboard.resources.identity.policy import Policy, Prices
from switchboard.resources.identity.queries import find_user, is_valid_key, lock_organization_of_slug
from switchboard.resources.identity.weekly_hours import Slot
from switchboard.resources.phone_numbers import purchases
from switchboard.resources.phone_numbers.queries import list_phone_numbers
from switchboard.resources.phone_numbers.schemas import PhoneNumberBuy
from switchboard.runtime import Runtime

NUMBER = "+15550100200"
EMAIL = "demo@example.com"
POLICY = Policy(prices=Prices(call_minute=0.01, transcription_minute=0.005, speech_1000_characters=0.01))
PROMPT = (
    "You answer the phone of the Blue Door bakery.\n"
    'When the caller says "what are your opening hours" or "when are you open" or "opening hours": say '
    '"We are open from seven to six, but not on Sundays."\n'
    'When the caller says "where are you" or "what is your address": say '
    '"You find us at twelve Mill Lane, next to the station."\n'
    'When the caller says "how much does it cost" or "how much is a loaf": say '
    '"A loaf of rye bread is four dollars."\n'
    'When the caller says "I would like to order bread" or "order": say '
    '"With pleasure. Tell me what you would like, and it is ready tomorrow at seven."\n'
    'When the caller says "an appointment" or "I would like an appointment" or "book a table": call find_slots\n'
    'When the caller says "the first one" or "the first": '
    'call book_appointment(slot_token="$slots.0.slot_token", name="Caller")\n'
    'When the caller says "the second one" or "the second": '
    'call book_appointment(slot_token="$slots.1.slot_token", name="Caller")\n'
    'When the caller says "cancel my appointment": call cancel_appointment\n'
    'When the caller says "can I speak to a human" or "speak to a person": say '
    '"I am connecting you." and call transfer_call(to_number="+15550100001")\n'
    'When the caller says "goodbye" or "bye": say '
    '"Goodbye, and thank you for calling the Blue Door bakery." and call end_call\n'
    'Otherwise: say "I can tell you our opening hours, our address and our prices."\n'
)
GREETING = "Hello, this is the Blue Door bakery. How can I help you?"


@dataclass(frozen=True, slots=True)
class Demo:
    """Credentials and addresses to try the demo."""

    organization_id: UUID
    phone_number: str
    api_key: str
    password: str

    def facts(self) -> dict[str, str]:
        """Return the content of `dev.json`."""
        return {
            "organization_id": str(self.organization_id),
            "api_key": self.api_key,
            "dashboard_email": EMAIL,
            "dashboard_password": self.password,
        }


async def seed(runtime: Runtime) -> Demo:
    """Create the missing parts of the demo; existing parts stay unchanged."""
    organization_id = await _organization(runtime)
    api_key, password = await _credentials(runtime.database, runtime.settings.data_dir, organization_id)
    return Demo(organization_id, await _number_and_agent(runtime, organization_id), api_key, password)


async def _organization(runtime: Runtime) -> UUID:
    path = runtime.settings.tenants_dir / "demo.toml"
    if path.exists():
        file = read_file(path, runtime.registry)
    else:
        async with runtime.database.system() as session:
            if (known := await lock_organization_of_slug(session, path.stem)) is not None:
                return known.id
        file = TenantFile(path, "Demo", policy=POLICY, providers=list_embedded_providers(runtime.registry))
    if file.faults:
        raise Failure("; ".join(map(str, file.faults)))
    organization_id, _ = await apply_tenant_file(runtime.database, runtime.registry, runtime.keyring, file)
    return organization_id


async def _number_and_agent(runtime: Runtime, organization_id: UUID) -> str:
    async with runtime.database.write(organization_id) as session:
        if numbers := await list_phone_numbers(session):
            return numbers[0].phone_number
        agent = next(iter(await list_agents_by_age(session)), None)
        if agent is None:
            data = AgentCreate(
                name="Front desk",
                system_prompt=PROMPT,
                greeting_message=GREETING,
                appointment_type_ids=[await _create_appointment_type(runtime, session)],
            )
            agent = await runtime.call(AgentPublisher).create_agent(session, data, None)
    order = PhoneNumberBuy(phone_number=NUMBER, friendly_name="Front desk", inbound_agent_id=str(agent.id))
    buyer = purchases.NumberBuyer(runtime.database, runtime.providers, runtime.settings)
    return (await buyer.buy_number(organization_id, order)).phone_number


async def _create_appointment_type(runtime: Runtime, session: WriteSession) -> str:
    """Create an appointment type in a calendar that needs no account, and return its id."""
    data = CalendarCreate(provider=LOCAL, name="Blue Door bakery")
    calendar = runtime.call(CalendarConnections).build_calendar(session.organization_id, data)
    session.add(calendar)
    hours = BookingHours(slots=[Slot(days=["mon", "tue", "wed", "thu", "fri", "sat"], start="09:00", end="17:00")])
    settings = AppointmentTypeSettings(calendar_ids=[str(calendar.id)], hours=hours)
    kind = AppointmentType(id=new_id(), organization_id=session.organization_id, name="Cake tasting", settings=settings)
    session.add(kind)
    return str(kind.id)


async def _credentials(database: Database, data_dir: Path, organization_id: UUID) -> tuple[str, str]:
    """Return the demo's API key and password, stored in the data directory: the database stores only their hashes."""
    path = data_dir / "demo.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    async with database.write(organization_id) as session:
        if not await is_valid_key(session, digest(kept.get("api_key", ""))):
            _, kept["api_key"] = await identity.create_api_key(session, name="make run", scopes=list(SCOPES))
    async with database.system() as session:
        if await find_user(session, EMAIL) is None:
            kept["password"] = secrets.token_urlsafe(12)
            await identity.create_user(
                session, email=EMAIL, password=kept["password"], superadmin=True, organization_id=organization_id
            )
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(kept, file)
    return kept["api_key"], kept.get("password", "")
