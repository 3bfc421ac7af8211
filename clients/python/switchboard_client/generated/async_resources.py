"""Resources of the asynchronous client. Generated: run `make clients` instead of editing."""

import builtins
from typing import Unpack

from switchboard_client.generated import models, requests
from switchboard_client.pages import AsyncPage
from switchboard_client.transport import ApiRequest, AsyncTransport


class AsyncAgents:
    """Methods of `agents`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListAgentsQuery]) -> AsyncPage[models.AgentOut]:
        """List agents."""
        request = ApiRequest("GET", "/v1/agents", query=query)
        return await self._transport.fetch_page(request, models.AgentOut)

    async def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.AgentCreate]
    ) -> models.AgentOut:
        """Create an agent."""
        request = ApiRequest("POST", "/v1/agents", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.AgentOut)

    async def delete(self, agent_id: str) -> None:
        """Delete an agent."""
        request = ApiRequest("DELETE", "/v1/agents/{agent_id}", ids={"agent_id": agent_id})
        await self._transport.send(request)

    async def get(self, agent_id: str) -> models.AgentOut:
        """Get an agent."""
        request = ApiRequest("GET", "/v1/agents/{agent_id}", ids={"agent_id": agent_id})
        return await self._transport.fetch(request, models.AgentOut)

    async def update(self, agent_id: str, **body: Unpack[requests.AgentUpdate]) -> models.AgentOut:
        """Update an agent."""
        request = ApiRequest("PUT", "/v1/agents/{agent_id}", ids={"agent_id": agent_id}, body=body)
        return await self._transport.fetch(request, models.AgentOut)

    async def discard_draft(self, agent_id: str) -> None:
        """Discard an agent's draft."""
        request = ApiRequest("DELETE", "/v1/agents/{agent_id}/draft", ids={"agent_id": agent_id})
        await self._transport.send(request)

    async def get_draft(self, agent_id: str) -> models.DraftOut:
        """Get an agent's draft."""
        request = ApiRequest("GET", "/v1/agents/{agent_id}/draft", ids={"agent_id": agent_id})
        return await self._transport.fetch(request, models.DraftOut)

    async def save_draft(self, agent_id: str, **body: Unpack[requests.DraftSave]) -> models.DraftOut:
        """Save an agent's draft."""
        request = ApiRequest("PUT", "/v1/agents/{agent_id}/draft", ids={"agent_id": agent_id}, body=body)
        return await self._transport.fetch(request, models.DraftOut)

    async def publish_draft(
        self, agent_id: str, *, idempotency_key: str | None = None, **body: Unpack[requests.DraftPublish]
    ) -> models.AgentOut:
        """Publish an agent's draft."""
        request = ApiRequest(
            "POST",
            "/v1/agents/{agent_id}/draft/publish",
            ids={"agent_id": agent_id},
            body=body,
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.AgentOut)

    async def list_simulations(
        self, agent_id: str, **query: Unpack[requests.ListSimulationsQuery]
    ) -> AsyncPage[models.SimulationOut]:
        """List an agent's simulations."""
        request = ApiRequest("GET", "/v1/agents/{agent_id}/simulations", ids={"agent_id": agent_id}, query=query)
        return await self._transport.fetch_page(request, models.SimulationOut)

    async def create_simulation(
        self, agent_id: str, *, idempotency_key: str | None = None, **body: Unpack[requests.SimulationCreate]
    ) -> models.SimulationOut:
        """Simulate a conversation with an agent."""
        request = ApiRequest(
            "POST",
            "/v1/agents/{agent_id}/simulations",
            ids={"agent_id": agent_id},
            body=body,
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.SimulationOut)

    async def get_simulation(self, agent_id: str, simulation_id: str) -> models.SimulationOut:
        """Get a simulation."""
        request = ApiRequest(
            "GET",
            "/v1/agents/{agent_id}/simulations/{simulation_id}",
            ids={"agent_id": agent_id, "simulation_id": simulation_id},
        )
        return await self._transport.fetch(request, models.SimulationOut)

    async def list_versions(
        self, agent_id: str, **query: Unpack[requests.ListAgentVersionsQuery]
    ) -> AsyncPage[models.AgentVersionOut]:
        """List an agent's versions."""
        request = ApiRequest("GET", "/v1/agents/{agent_id}/versions", ids={"agent_id": agent_id}, query=query)
        return await self._transport.fetch_page(request, models.AgentVersionOut)


class AsyncAnalytics:
    """Methods of `analytics`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get_calls_over_time(self, **query: Unpack[requests.GetCallsOverTimeQuery]) -> models.DaysOut:
        """Get the calls of each day of a period."""
        request = ApiRequest("GET", "/v1/analytics/calls-over-time", query=query)
        return await self._transport.fetch(request, models.DaysOut)

    async def get_overview(self, **query: Unpack[requests.GetOverviewQuery]) -> models.OverviewOut:
        """Get aggregate call, cost, and sentiment figures for a period."""
        request = ApiRequest("GET", "/v1/analytics/overview", query=query)
        return await self._transport.fetch(request, models.OverviewOut)


class AsyncAppointmentTypes:
    """Methods of `appointment_types`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListAppointmentTypesQuery]) -> AsyncPage[models.AppointmentTypeOut]:
        """List appointment types."""
        request = ApiRequest("GET", "/v1/appointment-types", query=query)
        return await self._transport.fetch_page(request, models.AppointmentTypeOut)

    async def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.AppointmentTypeCreate]
    ) -> models.AppointmentTypeOut:
        """Create an appointment type."""
        request = ApiRequest("POST", "/v1/appointment-types", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.AppointmentTypeOut)

    async def delete(self, type_id: str) -> None:
        """Delete an appointment type."""
        request = ApiRequest("DELETE", "/v1/appointment-types/{type_id}", ids={"type_id": type_id})
        await self._transport.send(request)

    async def get(self, type_id: str) -> models.AppointmentTypeOut:
        """Get an appointment type."""
        request = ApiRequest("GET", "/v1/appointment-types/{type_id}", ids={"type_id": type_id})
        return await self._transport.fetch(request, models.AppointmentTypeOut)

    async def update(self, type_id: str, **body: Unpack[requests.AppointmentTypeUpdate]) -> models.AppointmentTypeOut:
        """Update an appointment type."""
        request = ApiRequest("PATCH", "/v1/appointment-types/{type_id}", ids={"type_id": type_id}, body=body)
        return await self._transport.fetch(request, models.AppointmentTypeOut)

    async def list_free_times(
        self, type_id: str, **query: Unpack[requests.ListFreeTimesQuery]
    ) -> models.AvailabilityOut:
        """List free times of an appointment type."""
        request = ApiRequest(
            "GET", "/v1/appointment-types/{type_id}/availability", ids={"type_id": type_id}, query=query
        )
        return await self._transport.fetch(request, models.AvailabilityOut)


class AsyncAppointments:
    """Methods of `appointments`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListAppointmentsQuery]) -> AsyncPage[models.AppointmentOut]:
        """List appointments."""
        request = ApiRequest("GET", "/v1/appointments", query=query)
        return await self._transport.fetch_page(request, models.AppointmentOut)

    async def book(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.AppointmentCreate]
    ) -> models.AppointmentOut:
        """Book an appointment."""
        request = ApiRequest("POST", "/v1/appointments", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.AppointmentOut)

    async def cancel(self, appointment_id: str) -> None:
        """Cancel an appointment."""
        request = ApiRequest("DELETE", "/v1/appointments/{appointment_id}", ids={"appointment_id": appointment_id})
        await self._transport.send(request)

    async def get(self, appointment_id: str) -> models.AppointmentOut:
        """Get an appointment."""
        request = ApiRequest("GET", "/v1/appointments/{appointment_id}", ids={"appointment_id": appointment_id})
        return await self._transport.fetch(request, models.AppointmentOut)

    async def update(self, appointment_id: str, **body: Unpack[requests.AppointmentUpdate]) -> models.AppointmentOut:
        """Move or change an appointment."""
        request = ApiRequest(
            "PATCH", "/v1/appointments/{appointment_id}", ids={"appointment_id": appointment_id}, body=body
        )
        return await self._transport.fetch(request, models.AppointmentOut)


class AsyncAutomations:
    """Methods of `automations`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListAutomationsQuery]) -> AsyncPage[models.AutomationOut]:
        """List automations."""
        request = ApiRequest("GET", "/v1/automations", query=query)
        return await self._transport.fetch_page(request, models.AutomationOut)

    async def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.AutomationCreate]
    ) -> models.AutomationOut:
        """Create an automation."""
        request = ApiRequest("POST", "/v1/automations", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.AutomationOut)

    async def delete(self, automation_id: str) -> None:
        """Delete an automation."""
        request = ApiRequest("DELETE", "/v1/automations/{automation_id}", ids={"automation_id": automation_id})
        await self._transport.send(request)

    async def get(self, automation_id: str) -> models.AutomationOut:
        """Get an automation."""
        request = ApiRequest("GET", "/v1/automations/{automation_id}", ids={"automation_id": automation_id})
        return await self._transport.fetch(request, models.AutomationOut)

    async def update(self, automation_id: str, **body: Unpack[requests.AutomationUpdate]) -> models.AutomationOut:
        """Update an automation."""
        request = ApiRequest(
            "PATCH", "/v1/automations/{automation_id}", ids={"automation_id": automation_id}, body=body
        )
        return await self._transport.fetch(request, models.AutomationOut)

    async def list_runs(
        self, automation_id: str, **query: Unpack[requests.ListAutomationRunsQuery]
    ) -> AsyncPage[models.AutomationRunOut]:
        """List an automation's runs."""
        request = ApiRequest(
            "GET", "/v1/automations/{automation_id}/runs", ids={"automation_id": automation_id}, query=query
        )
        return await self._transport.fetch_page(request, models.AutomationRunOut)

    async def retry_run(
        self, automation_id: str, run_id: str, *, idempotency_key: str | None = None
    ) -> models.AutomationRunOut:
        """Retry a failed run."""
        request = ApiRequest(
            "POST",
            "/v1/automations/{automation_id}/runs/{run_id}/retry",
            ids={"automation_id": automation_id, "run_id": run_id},
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.AutomationRunOut)


class AsyncBilling:
    """Methods of `billing`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get_balance(self) -> models.BalanceOut:
        """Get the balance."""
        request = ApiRequest("GET", "/v1/billing/balance")
        return await self._transport.fetch(request, models.BalanceOut)


class AsyncBrowserCall:
    """Methods of `browser_call`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list_phone_numbers(self) -> models.CallerIds:
        """List the phone numbers that a browser can call from."""
        request = ApiRequest("GET", "/v1/browser-call/phone-numbers")
        return await self._transport.fetch(request, models.CallerIds)

    async def create_token(
        self, *, idempotency_key: str | None = None, **query: Unpack[requests.CreateBrowserCallTokenQuery]
    ) -> models.BrowserTokenOut:
        """Create a token for calling from a browser or a phone app, and for being rung there."""
        request = ApiRequest("POST", "/v1/browser-call/token", query=query, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.BrowserTokenOut)


class AsyncCalendars:
    """Methods of `calendars`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListCalendarsQuery]) -> AsyncPage[models.CalendarOut]:
        """List connected calendars."""
        request = ApiRequest("GET", "/v1/calendars", query=query)
        return await self._transport.fetch_page(request, models.CalendarOut)

    async def connect(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.CalendarCreate]
    ) -> models.CalendarOut:
        """Connect a calendar."""
        request = ApiRequest("POST", "/v1/calendars", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.CalendarOut)

    async def delete(self, calendar_id: str) -> None:
        """Disconnect a calendar."""
        request = ApiRequest("DELETE", "/v1/calendars/{calendar_id}", ids={"calendar_id": calendar_id})
        await self._transport.send(request)

    async def get(self, calendar_id: str) -> models.CalendarOut:
        """Get a calendar."""
        request = ApiRequest("GET", "/v1/calendars/{calendar_id}", ids={"calendar_id": calendar_id})
        return await self._transport.fetch(request, models.CalendarOut)

    async def update(self, calendar_id: str, **body: Unpack[requests.CalendarUpdate]) -> models.CalendarOut:
        """Update a calendar."""
        request = ApiRequest("PATCH", "/v1/calendars/{calendar_id}", ids={"calendar_id": calendar_id}, body=body)
        return await self._transport.fetch(request, models.CalendarOut)


class AsyncCalls:
    """Methods of `calls`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListCallsQuery]) -> AsyncPage[models.CallOut]:
        """List calls."""
        request = ApiRequest("GET", "/v1/calls", query=query)
        return await self._transport.fetch_page(request, models.CallOut)

    async def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.CallCreate]
    ) -> models.CallOut:
        """Start an outbound call through an agent."""
        request = ApiRequest("POST", "/v1/calls", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.CallOut)

    async def get(self, call_id: str) -> models.CallOut:
        """Get a call."""
        request = ApiRequest("GET", "/v1/calls/{call_id}", ids={"call_id": call_id})
        return await self._transport.fetch(request, models.CallOut)

    async def get_recording(self, call_id: str) -> bytes:
        """Stream a call's recording."""
        request = ApiRequest("GET", "/v1/calls/{call_id}/recording", ids={"call_id": call_id})
        return await self._transport.send(request)

    async def get_recording_url(self, call_id: str) -> models.RecordingLinkOut:
        """Get a link to a call's recording."""
        request = ApiRequest("GET", "/v1/calls/{call_id}/recording-url", ids={"call_id": call_id})
        return await self._transport.fetch(request, models.RecordingLinkOut)

    async def get_transcript(self, call_id: str) -> builtins.list[models.TranscriptEntryOut]:
        """Get a call's transcript."""
        request = ApiRequest("GET", "/v1/calls/{call_id}/transcript", ids={"call_id": call_id})
        return await self._transport.fetch(request, builtins.list[models.TranscriptEntryOut])


class AsyncCampaigns:
    """Methods of `campaigns`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListCampaignsQuery]) -> AsyncPage[models.CampaignOut]:
        """List campaigns."""
        request = ApiRequest("GET", "/v1/campaigns", query=query)
        return await self._transport.fetch_page(request, models.CampaignOut)

    async def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.CampaignCreate]
    ) -> models.CampaignOut:
        """Create a campaign."""
        request = ApiRequest("POST", "/v1/campaigns", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.CampaignOut)

    async def delete(self, campaign_id: str) -> None:
        """Delete a campaign."""
        request = ApiRequest("DELETE", "/v1/campaigns/{campaign_id}", ids={"campaign_id": campaign_id})
        await self._transport.send(request)

    async def get(self, campaign_id: str) -> models.CampaignOut:
        """Get a campaign."""
        request = ApiRequest("GET", "/v1/campaigns/{campaign_id}", ids={"campaign_id": campaign_id})
        return await self._transport.fetch(request, models.CampaignOut)

    async def cancel(self, campaign_id: str, *, idempotency_key: str | None = None) -> models.CampaignOut:
        """Cancel a campaign for good."""
        request = ApiRequest(
            "POST",
            "/v1/campaigns/{campaign_id}/cancel",
            ids={"campaign_id": campaign_id},
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.CampaignOut)

    async def list_contacts(
        self, campaign_id: str, **query: Unpack[requests.ListCampaignContactsQuery]
    ) -> AsyncPage[models.CampaignContactOut]:
        """List a campaign's contacts."""
        request = ApiRequest(
            "GET", "/v1/campaigns/{campaign_id}/contacts", ids={"campaign_id": campaign_id}, query=query
        )
        return await self._transport.fetch_page(request, models.CampaignContactOut)

    async def pause(self, campaign_id: str, *, idempotency_key: str | None = None) -> models.CampaignOut:
        """Pause a campaign."""
        request = ApiRequest(
            "POST",
            "/v1/campaigns/{campaign_id}/pause",
            ids={"campaign_id": campaign_id},
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.CampaignOut)

    async def resume(self, campaign_id: str, *, idempotency_key: str | None = None) -> models.CampaignOut:
        """Resume a paused campaign."""
        request = ApiRequest(
            "POST",
            "/v1/campaigns/{campaign_id}/resume",
            ids={"campaign_id": campaign_id},
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.CampaignOut)

    async def start(self, campaign_id: str, *, idempotency_key: str | None = None) -> models.CampaignOut:
        """Start a campaign."""
        request = ApiRequest(
            "POST",
            "/v1/campaigns/{campaign_id}/start",
            ids={"campaign_id": campaign_id},
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.CampaignOut)


class AsyncContacts:
    """Methods of `contacts`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListContactsQuery]) -> AsyncPage[models.ContactOut]:
        """List contacts."""
        request = ApiRequest("GET", "/v1/contacts", query=query)
        return await self._transport.fetch_page(request, models.ContactOut)

    async def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.ContactCreate]
    ) -> models.ContactOut:
        """Create a contact."""
        request = ApiRequest("POST", "/v1/contacts", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.ContactOut)

    async def delete(self, contact_id: str) -> None:
        """Delete a contact."""
        request = ApiRequest("DELETE", "/v1/contacts/{contact_id}", ids={"contact_id": contact_id})
        await self._transport.send(request)

    async def get(self, contact_id: str) -> models.ContactOut:
        """Get a contact."""
        request = ApiRequest("GET", "/v1/contacts/{contact_id}", ids={"contact_id": contact_id})
        return await self._transport.fetch(request, models.ContactOut)

    async def update(self, contact_id: str, **body: Unpack[requests.ContactUpdate]) -> models.ContactOut:
        """Update a contact."""
        request = ApiRequest("PATCH", "/v1/contacts/{contact_id}", ids={"contact_id": contact_id}, body=body)
        return await self._transport.fetch(request, models.ContactOut)


class AsyncDoNotCall:
    """Methods of `do_not_call`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list_entries(self, **query: Unpack[requests.ListDoNotCallEntriesQuery]) -> AsyncPage[models.DoNotCallOut]:
        """List the numbers on the do-not-call list."""
        request = ApiRequest("GET", "/v1/do-not-call", query=query)
        return await self._transport.fetch_page(request, models.DoNotCallOut)

    async def create_entry(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.DoNotCallCreate]
    ) -> models.DoNotCallOut:
        """Add a number to the do-not-call list."""
        request = ApiRequest("POST", "/v1/do-not-call", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.DoNotCallOut)

    async def delete_entry(self, entry_id: str) -> None:
        """Remove an entry from the do-not-call list."""
        request = ApiRequest("DELETE", "/v1/do-not-call/{entry_id}", ids={"entry_id": entry_id})
        await self._transport.send(request)


class AsyncDocuments:
    """Methods of `documents`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def delete(self, doc_id: str) -> None:
        """Delete a document."""
        request = ApiRequest("DELETE", "/v1/documents/{doc_id}", ids={"doc_id": doc_id})
        await self._transport.send(request)

    async def get(self, doc_id: str) -> models.DocumentOut:
        """Get a document."""
        request = ApiRequest("GET", "/v1/documents/{doc_id}", ids={"doc_id": doc_id})
        return await self._transport.fetch(request, models.DocumentOut)


class AsyncExports:
    """Methods of `exports`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def export_calls(self, **query: Unpack[requests.ExportCallsQuery]) -> bytes:
        """Export calls."""
        request = ApiRequest("GET", "/v1/exports/calls", query=query)
        return await self._transport.send(request)

    async def export_campaign_contacts(self, **query: Unpack[requests.ExportCampaignContactsQuery]) -> bytes:
        """Export a campaign's contacts with their results."""
        request = ApiRequest("GET", "/v1/exports/campaign-contacts", query=query)
        return await self._transport.send(request)

    async def export_contacts(self, **query: Unpack[requests.ExportContactsQuery]) -> bytes:
        """Export contacts."""
        request = ApiRequest("GET", "/v1/exports/contacts", query=query)
        return await self._transport.send(request)

    async def export_messages(self, **query: Unpack[requests.ExportMessagesQuery]) -> bytes:
        """Export text messages."""
        request = ApiRequest("GET", "/v1/exports/messages", query=query)
        return await self._transport.send(request)

    async def export_transcripts(self, **query: Unpack[requests.ExportTranscriptsQuery]) -> bytes:
        """Export the transcripts of calls."""
        request = ApiRequest("GET", "/v1/exports/transcripts", query=query)
        return await self._transport.send(request)

    async def export_usage(self, **query: Unpack[requests.ExportUsageQuery]) -> bytes:
        """Export the usage of the last twelve months."""
        request = ApiRequest("GET", "/v1/exports/usage", query=query)
        return await self._transport.send(request)


class AsyncIntegrations:
    """Methods of `integrations`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def change(self, **body: Unpack[requests.IntegrationUpdate]) -> models.IntegrationOut:
        """Set the integration's credentials."""
        request = ApiRequest("PUT", "/v1/integrations", body=body)
        return await self._transport.fetch(request, models.IntegrationOut)


class AsyncKnowledgeBases:
    """Methods of `knowledge_bases`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListKnowledgeBasesQuery]) -> AsyncPage[models.KnowledgeBaseOut]:
        """List knowledge bases."""
        request = ApiRequest("GET", "/v1/knowledge-bases", query=query)
        return await self._transport.fetch_page(request, models.KnowledgeBaseOut)

    async def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.KnowledgeBaseCreate]
    ) -> models.KnowledgeBaseOut:
        """Create a knowledge base."""
        request = ApiRequest("POST", "/v1/knowledge-bases", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.KnowledgeBaseOut)

    async def delete(self, kb_id: str) -> None:
        """Delete a knowledge base with its documents."""
        request = ApiRequest("DELETE", "/v1/knowledge-bases/{kb_id}", ids={"kb_id": kb_id})
        await self._transport.send(request)

    async def get(self, kb_id: str) -> models.KnowledgeBaseOut:
        """Get a knowledge base."""
        request = ApiRequest("GET", "/v1/knowledge-bases/{kb_id}", ids={"kb_id": kb_id})
        return await self._transport.fetch(request, models.KnowledgeBaseOut)

    async def list_documents(
        self, kb_id: str, **query: Unpack[requests.ListDocumentsQuery]
    ) -> AsyncPage[models.DocumentOut]:
        """List a knowledge base's documents."""
        request = ApiRequest("GET", "/v1/knowledge-bases/{kb_id}/documents", ids={"kb_id": kb_id}, query=query)
        return await self._transport.fetch_page(request, models.DocumentOut)

    async def create_document(
        self, kb_id: str, *, idempotency_key: str | None = None, **body: Unpack[requests.DocumentCreate]
    ) -> models.DocumentOut:
        """Add a document."""
        request = ApiRequest(
            "POST",
            "/v1/knowledge-bases/{kb_id}/documents",
            ids={"kb_id": kb_id},
            body=body,
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.DocumentOut)

    async def search(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.KnowledgeSearch]
    ) -> models.PassagesOut:
        """Search knowledge bases."""
        request = ApiRequest("POST", "/v1/knowledge-bases/search", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.PassagesOut)


class AsyncPhoneNumbers:
    """Methods of `phone_numbers`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListPhoneNumbersQuery]) -> AsyncPage[models.PhoneNumberOut]:
        """List phone numbers."""
        request = ApiRequest("GET", "/v1/phone-numbers", query=query)
        return await self._transport.fetch_page(request, models.PhoneNumberOut)

    async def buy(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.PhoneNumberBuy]
    ) -> models.PhoneNumberOut:
        """Buy a phone number."""
        request = ApiRequest("POST", "/v1/phone-numbers", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.PhoneNumberOut)

    async def release(self, number_id: str) -> models.PhoneNumberOut:
        """Release a phone number."""
        request = ApiRequest("DELETE", "/v1/phone-numbers/{number_id}", ids={"number_id": number_id})
        return await self._transport.fetch(request, models.PhoneNumberOut)

    async def update(self, number_id: str, **body: Unpack[requests.PhoneNumberUpdate]) -> models.PhoneNumberOut:
        """Update a phone number."""
        request = ApiRequest("PUT", "/v1/phone-numbers/{number_id}", ids={"number_id": number_id}, body=body)
        return await self._transport.fetch(request, models.PhoneNumberOut)

    async def enter(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.PhoneNumbersImport]
    ) -> models.EnteredNumbers:
        """Enter phone numbers that a trunk has."""
        request = ApiRequest("POST", "/v1/phone-numbers/enter", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.EnteredNumbers)

    async def search(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.NumberSearch]
    ) -> models.AvailableNumbers:
        """Search phone numbers to buy."""
        request = ApiRequest("POST", "/v1/phone-numbers/search", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.AvailableNumbers)


class AsyncPrivacyRequests:
    """Methods of `privacy_requests`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListPrivacyRequestsQuery]) -> AsyncPage[models.PrivacyRequestOut]:
        """List privacy requests."""
        request = ApiRequest("GET", "/v1/privacy-requests", query=query)
        return await self._transport.fetch_page(request, models.PrivacyRequestOut)

    async def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.PrivacyRequestCreate]
    ) -> models.PrivacyRequestOut:
        """Request a copy of a person's data, or its deletion."""
        request = ApiRequest("POST", "/v1/privacy-requests", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.PrivacyRequestOut)

    async def get(self, request_id: str) -> models.PrivacyRequestOut:
        """Get a privacy request."""
        request = ApiRequest("GET", "/v1/privacy-requests/{request_id}", ids={"request_id": request_id})
        return await self._transport.fetch(request, models.PrivacyRequestOut)

    async def get_export_url(self, request_id: str) -> models.ExportLinkOut:
        """Get a link to the file of an export."""
        request = ApiRequest("GET", "/v1/privacy-requests/{request_id}/export-url", ids={"request_id": request_id})
        return await self._transport.fetch(request, models.ExportLinkOut)


class AsyncSms:
    """Methods of `sms`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def send(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.SmsCreate]
    ) -> models.SmsMessageOut:
        """Send a text message."""
        request = ApiRequest("POST", "/v1/sms", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.SmsMessageOut)

    async def list_conversations(
        self, **query: Unpack[requests.ListSmsConversationsQuery]
    ) -> AsyncPage[models.SmsConversationOut]:
        """List text message conversations."""
        request = ApiRequest("GET", "/v1/sms/conversations", query=query)
        return await self._transport.fetch_page(request, models.SmsConversationOut)

    async def get_conversation(self, conversation_id: str) -> models.SmsConversationOut:
        """View a conversation."""
        request = ApiRequest("GET", "/v1/sms/conversations/{conversation_id}", ids={"conversation_id": conversation_id})
        return await self._transport.fetch(request, models.SmsConversationOut)

    async def update_conversation(
        self, conversation_id: str, **body: Unpack[requests.SmsConversationUpdate]
    ) -> models.SmsConversationOut:
        """Assign or resolve a conversation."""
        request = ApiRequest(
            "PATCH", "/v1/sms/conversations/{conversation_id}", ids={"conversation_id": conversation_id}, body=body
        )
        return await self._transport.fetch(request, models.SmsConversationOut)

    async def list_messages(
        self, conversation_id: str, **query: Unpack[requests.ListSmsMessagesQuery]
    ) -> AsyncPage[models.SmsMessageOut]:
        """List the messages of a conversation."""
        request = ApiRequest(
            "GET",
            "/v1/sms/conversations/{conversation_id}/messages",
            ids={"conversation_id": conversation_id},
            query=query,
        )
        return await self._transport.fetch_page(request, models.SmsMessageOut)

    async def read_conversation(self, conversation_id: str, *, idempotency_key: str | None = None) -> None:
        """Mark a conversation as read by the user of the access token."""
        request = ApiRequest(
            "POST",
            "/v1/sms/conversations/{conversation_id}/read",
            ids={"conversation_id": conversation_id},
            idempotency_key=idempotency_key,
        )
        await self._transport.send(request)

    async def get_media(self, media_id: str) -> bytes:
        """Get a file of a received message."""
        request = ApiRequest("GET", "/v1/sms/media/{media_id}", ids={"media_id": media_id})
        return await self._transport.send(request)

    async def get_media_url(self, media_id: str) -> models.MediaLinkOut:
        """Get a link to a file of a received message."""
        request = ApiRequest("GET", "/v1/sms/media/{media_id}/url", ids={"media_id": media_id})
        return await self._transport.fetch(request, models.MediaLinkOut)


class AsyncUsage:
    """Methods of `usage`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get(self) -> models.UsageOut:
        """Get the current month's usage."""
        request = ApiRequest("GET", "/v1/usage")
        return await self._transport.fetch(request, models.UsageOut)

    async def get_history(self, **query: Unpack[requests.GetUsageHistoryQuery]) -> models.UsageHistoryOut:
        """Get usage by month."""
        request = ApiRequest("GET", "/v1/usage/history", query=query)
        return await self._transport.fetch(request, models.UsageHistoryOut)


class AsyncWebhookDeliveries:
    """Methods of `webhook_deliveries`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListWebhookDeliveriesQuery]) -> AsyncPage[models.DeliveryOut]:
        """List all deliveries."""
        request = ApiRequest("GET", "/v1/webhook-deliveries", query=query)
        return await self._transport.fetch_page(request, models.DeliveryOut)

    async def get(self, delivery_id: str) -> models.DeliveryOut:
        """Get a delivery."""
        request = ApiRequest("GET", "/v1/webhook-deliveries/{delivery_id}", ids={"delivery_id": delivery_id})
        return await self._transport.fetch(request, models.DeliveryOut)

    async def list_delivery_attempts(self, delivery_id: str) -> models.AttemptsOut:
        """List a delivery's attempts."""
        request = ApiRequest("GET", "/v1/webhook-deliveries/{delivery_id}/attempts", ids={"delivery_id": delivery_id})
        return await self._transport.fetch(request, models.AttemptsOut)

    async def replay_delivery(self, delivery_id: str, *, idempotency_key: str | None = None) -> models.DeliveryOut:
        """Replay a delivery."""
        request = ApiRequest(
            "POST",
            "/v1/webhook-deliveries/{delivery_id}/replay",
            ids={"delivery_id": delivery_id},
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.DeliveryOut)


class AsyncWebhookEndpoints:
    """Methods of `webhook_endpoints`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> builtins.list[models.EndpointOut]:
        """List webhook endpoints."""
        request = ApiRequest("GET", "/v1/webhook-endpoints")
        return await self._transport.fetch(request, builtins.list[models.EndpointOut])

    async def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.EndpointCreate]
    ) -> models.EndpointCreated:
        """Create a webhook endpoint."""
        request = ApiRequest("POST", "/v1/webhook-endpoints", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.EndpointCreated)

    async def delete(self, endpoint_id: str) -> None:
        """Delete a webhook endpoint."""
        request = ApiRequest("DELETE", "/v1/webhook-endpoints/{endpoint_id}", ids={"endpoint_id": endpoint_id})
        await self._transport.send(request)

    async def get(self, endpoint_id: str) -> models.EndpointOut:
        """Get a webhook endpoint."""
        request = ApiRequest("GET", "/v1/webhook-endpoints/{endpoint_id}", ids={"endpoint_id": endpoint_id})
        return await self._transport.fetch(request, models.EndpointOut)

    async def update(self, endpoint_id: str, **body: Unpack[requests.EndpointUpdate]) -> models.EndpointOut:
        """Update a webhook endpoint."""
        request = ApiRequest(
            "PATCH", "/v1/webhook-endpoints/{endpoint_id}", ids={"endpoint_id": endpoint_id}, body=body
        )
        return await self._transport.fetch(request, models.EndpointOut)

    async def list_deliveries(
        self, endpoint_id: str, **query: Unpack[requests.ListWebhookEndpointDeliveriesQuery]
    ) -> AsyncPage[models.DeliveryOut]:
        """List an endpoint's deliveries."""
        request = ApiRequest(
            "GET", "/v1/webhook-endpoints/{endpoint_id}/deliveries", ids={"endpoint_id": endpoint_id}, query=query
        )
        return await self._transport.fetch_page(request, models.DeliveryOut)

    async def replay_failed_deliveries(
        self, endpoint_id: str, *, idempotency_key: str | None = None, **body: Unpack[requests.ReplayRequest]
    ) -> models.ReplayOut:
        """Replay an endpoint's failed deliveries of a period."""
        request = ApiRequest(
            "POST",
            "/v1/webhook-endpoints/{endpoint_id}/replay-failed",
            ids={"endpoint_id": endpoint_id},
            body=body,
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.ReplayOut)

    async def rotate_webhook_secret(
        self,
        endpoint_id: str,
        *,
        idempotency_key: str | None = None,
        **query: Unpack[requests.RotateWebhookSecretQuery],
    ) -> models.RotatedSecret:
        """Rotate an endpoint's secret."""
        request = ApiRequest(
            "POST",
            "/v1/webhook-endpoints/{endpoint_id}/rotate-secret",
            ids={"endpoint_id": endpoint_id},
            query=query,
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.RotatedSecret)

    async def send_test_event(self, endpoint_id: str, *, idempotency_key: str | None = None) -> models.DeliveryOut:
        """Send a test event."""
        request = ApiRequest(
            "POST",
            "/v1/webhook-endpoints/{endpoint_id}/test",
            ids={"endpoint_id": endpoint_id},
            idempotency_key=idempotency_key,
        )
        return await self._transport.fetch(request, models.DeliveryOut)


class AsyncWebhookEvents:
    """Methods of `webhook_events`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> models.EventsOut:
        """List the events that endpoints can subscribe to."""
        request = ApiRequest("GET", "/v1/webhook-events")
        return await self._transport.fetch(request, models.EventsOut)


class AsyncWidgets:
    """Methods of `widgets`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, **query: Unpack[requests.ListWidgetsQuery]) -> AsyncPage[models.WidgetOut]:
        """List widgets."""
        request = ApiRequest("GET", "/v1/widgets", query=query)
        return await self._transport.fetch_page(request, models.WidgetOut)

    async def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[requests.WidgetCreate]
    ) -> models.WidgetOut:
        """Create a widget."""
        request = ApiRequest("POST", "/v1/widgets", body=body, idempotency_key=idempotency_key)
        return await self._transport.fetch(request, models.WidgetOut)

    async def delete(self, widget_id: str) -> None:
        """Delete a widget."""
        request = ApiRequest("DELETE", "/v1/widgets/{widget_id}", ids={"widget_id": widget_id})
        await self._transport.send(request)

    async def get(self, widget_id: str) -> models.WidgetOut:
        """Get a widget."""
        request = ApiRequest("GET", "/v1/widgets/{widget_id}", ids={"widget_id": widget_id})
        return await self._transport.fetch(request, models.WidgetOut)

    async def update(self, widget_id: str, **body: Unpack[requests.WidgetUpdate]) -> models.WidgetOut:
        """Update a widget."""
        request = ApiRequest("PATCH", "/v1/widgets/{widget_id}", ids={"widget_id": widget_id}, body=body)
        return await self._transport.fetch(request, models.WidgetOut)


class AsyncResources:
    """All resources of the API."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.agents = AsyncAgents(transport)
        self.analytics = AsyncAnalytics(transport)
        self.appointment_types = AsyncAppointmentTypes(transport)
        self.appointments = AsyncAppointments(transport)
        self.automations = AsyncAutomations(transport)
        self.billing = AsyncBilling(transport)
        self.browser_call = AsyncBrowserCall(transport)
        self.calendars = AsyncCalendars(transport)
        self.calls = AsyncCalls(transport)
        self.campaigns = AsyncCampaigns(transport)
        self.contacts = AsyncContacts(transport)
        self.do_not_call = AsyncDoNotCall(transport)
        self.documents = AsyncDocuments(transport)
        self.exports = AsyncExports(transport)
        self.integrations = AsyncIntegrations(transport)
        self.knowledge_bases = AsyncKnowledgeBases(transport)
        self.phone_numbers = AsyncPhoneNumbers(transport)
        self.privacy_requests = AsyncPrivacyRequests(transport)
        self.sms = AsyncSms(transport)
        self.usage = AsyncUsage(transport)
        self.webhook_deliveries = AsyncWebhookDeliveries(transport)
        self.webhook_endpoints = AsyncWebhookEndpoints(transport)
        self.webhook_events = AsyncWebhookEvents(transport)
        self.widgets = AsyncWidgets(transport)
