"""Alembic's entry: the one list of the files that hold tables."""

from alembic import context
from sqlmodel import SQLModel

from switchboard.agents import models as agents
from switchboard.automations import models as automations
from switchboard.billing import models as billing
from switchboard.calls import models as calls
from switchboard.campaigns import models as campaigns
from switchboard.contacts import models as contacts
from switchboard.do_not_call import models as do_not_call
from switchboard.events import models as events
from switchboard.identity import models as identity
from switchboard.integrations import models as integrations
from switchboard.knowledge_bases import models as knowledge_bases
from switchboard.oauth import models as oauth
from switchboard.phone_numbers import models as phone_numbers
from switchboard.providers import models as providers
from switchboard.simulations import models as simulations
from switchboard.sms import models as sms
from switchboard.web import models as web

TABLES = (
    agents, automations, billing, calls, campaigns, contacts, do_not_call, events, identity, integrations, knowledge_bases, oauth, phone_numbers,
    providers, simulations, sms, web,
)  # fmt: skip

context.configure(connection=context.config.attributes["connection"], target_metadata=SQLModel.metadata, compare_type=True)
context.run_migrations()
