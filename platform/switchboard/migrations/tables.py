"""The modules with tables. To import this one completes `SQLModel.metadata`."""

from switchboard.engine.providers import models as providers
from switchboard.foundation import leases
from switchboard.foundation.encryption import content
from switchboard.foundation.events import models as events
from switchboard.foundation.web import idempotency, row_counts
from switchboard.resources.agents import models as agents
from switchboard.resources.appointments import models as appointments
from switchboard.resources.automations import models as automations
from switchboard.resources.billing import models as billing
from switchboard.resources.calls import models as calls
from switchboard.resources.campaigns import models as campaigns
from switchboard.resources.contacts import models as contacts
from switchboard.resources.do_not_call import models as do_not_call
from switchboard.resources.identity import models as identity
from switchboard.resources.integrations import models as integrations
from switchboard.resources.knowledge_bases import models as knowledge_bases
from switchboard.resources.oauth import models as oauth
from switchboard.resources.phone_numbers import models as phone_numbers
from switchboard.resources.privacy import models as privacy
from switchboard.resources.saved_views import models as saved_views
from switchboard.resources.sms import models as sms
from switchboard.resources.widgets import models as widgets
