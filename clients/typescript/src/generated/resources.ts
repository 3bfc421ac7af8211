// Resources of the client. Generated: run `make clients` instead of editing.

import type { Page } from "../pages.js";
import type { RequestOptions, Transport } from "../transport.js";
import type * as api from "./types.js";

/** An event that webhooks deliver; `event` tells which. A later server may send events that are not among these. */
export type WebhookEvent =
  | api.CallStartedDelivery
  | api.CallRingingDelivery
  | api.CallCompletedDelivery
  | api.CallFailedDelivery
  | api.CallTakeoverDelivery
  | api.CallHandedOffDelivery
  | api.CallTranscriptReadyDelivery
  | api.SmsReceivedDelivery
  | api.SmsSentDelivery
  | api.SimulationCompletedDelivery
  | api.AppointmentBookedDelivery
  | api.AppointmentMovedDelivery
  | api.AppointmentCanceledDelivery
  | api.AppointmentReminderDelivery
  | api.CalendarDisconnectedDelivery;

/** Methods of `agents`. */
export class Agents {
  constructor(private readonly transport: Transport) {}

  /** List agents. */
  list(query: api.ListAgentsQuery = {}, options: RequestOptions = {}): Promise<Page<api.AgentOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/agents", ids, query, options };
    return this.transport.fetchPage<api.AgentOut>(request);
  }

  /** Create an agent. */
  create(body: api.AgentCreate, options: RequestOptions = {}): Promise<api.AgentOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/agents", ids, body, options };
    return this.transport.fetchJson<api.AgentOut>(request);
  }

  /** Delete an agent. */
  delete(agentId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { agent_id: agentId };
    const request = { method: "DELETE", path: "/v1/agents/{agent_id}", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get an agent. */
  get(agentId: string, options: RequestOptions = {}): Promise<api.AgentOut> {
    const ids = { agent_id: agentId };
    const request = { method: "GET", path: "/v1/agents/{agent_id}", ids, options };
    return this.transport.fetchJson<api.AgentOut>(request);
  }

  /** Update an agent. */
  update(agentId: string, body: api.AgentUpdate, options: RequestOptions = {}): Promise<api.AgentOut> {
    const ids = { agent_id: agentId };
    const request = { method: "PUT", path: "/v1/agents/{agent_id}", ids, body, options };
    return this.transport.fetchJson<api.AgentOut>(request);
  }

  /** Discard an agent's draft. */
  discardDraft(agentId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { agent_id: agentId };
    const request = { method: "DELETE", path: "/v1/agents/{agent_id}/draft", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get an agent's draft. */
  getDraft(agentId: string, options: RequestOptions = {}): Promise<api.DraftOut> {
    const ids = { agent_id: agentId };
    const request = { method: "GET", path: "/v1/agents/{agent_id}/draft", ids, options };
    return this.transport.fetchJson<api.DraftOut>(request);
  }

  /** Save an agent's draft. */
  saveDraft(agentId: string, body: api.DraftSave, options: RequestOptions = {}): Promise<api.DraftOut> {
    const ids = { agent_id: agentId };
    const request = { method: "PUT", path: "/v1/agents/{agent_id}/draft", ids, body, options };
    return this.transport.fetchJson<api.DraftOut>(request);
  }

  /** Publish an agent's draft. */
  publishDraft(agentId: string, body: api.DraftPublish, options: RequestOptions = {}): Promise<api.AgentOut> {
    const ids = { agent_id: agentId };
    const request = { method: "POST", path: "/v1/agents/{agent_id}/draft/publish", ids, body, options };
    return this.transport.fetchJson<api.AgentOut>(request);
  }

  /** List an agent's simulations. */
  listSimulations(agentId: string, query: api.ListSimulationsQuery = {}, options: RequestOptions = {}): Promise<Page<api.SimulationOut>> {
    const ids = { agent_id: agentId };
    const request = { method: "GET", path: "/v1/agents/{agent_id}/simulations", ids, query, options };
    return this.transport.fetchPage<api.SimulationOut>(request);
  }

  /** Simulate a conversation with an agent. */
  createSimulation(agentId: string, body: api.SimulationCreate, options: RequestOptions = {}): Promise<api.SimulationOut> {
    const ids = { agent_id: agentId };
    const request = { method: "POST", path: "/v1/agents/{agent_id}/simulations", ids, body, options };
    return this.transport.fetchJson<api.SimulationOut>(request);
  }

  /** Get a simulation. */
  getSimulation(agentId: string, simulationId: string, options: RequestOptions = {}): Promise<api.SimulationOut> {
    const ids = { agent_id: agentId,  simulation_id: simulationId };
    const request = { method: "GET", path: "/v1/agents/{agent_id}/simulations/{simulation_id}", ids, options };
    return this.transport.fetchJson<api.SimulationOut>(request);
  }

  /** List an agent's versions. */
  listVersions(agentId: string, query: api.ListAgentVersionsQuery = {}, options: RequestOptions = {}): Promise<Page<api.AgentVersionOut>> {
    const ids = { agent_id: agentId };
    const request = { method: "GET", path: "/v1/agents/{agent_id}/versions", ids, query, options };
    return this.transport.fetchPage<api.AgentVersionOut>(request);
  }
}

/** Methods of `analytics`. */
export class Analytics {
  constructor(private readonly transport: Transport) {}

  /** Get the calls of each day of a period. */
  getCallsOverTime(query: api.GetCallsOverTimeQuery = {}, options: RequestOptions = {}): Promise<api.DaysOut> {
    const ids = {};
    const request = { method: "GET", path: "/v1/analytics/calls-over-time", ids, query, options };
    return this.transport.fetchJson<api.DaysOut>(request);
  }

  /** Get aggregate call, cost, and sentiment figures for a period. */
  getOverview(query: api.GetOverviewQuery = {}, options: RequestOptions = {}): Promise<api.OverviewOut> {
    const ids = {};
    const request = { method: "GET", path: "/v1/analytics/overview", ids, query, options };
    return this.transport.fetchJson<api.OverviewOut>(request);
  }
}

/** Methods of `appointmentTypes`. */
export class AppointmentTypes {
  constructor(private readonly transport: Transport) {}

  /** List appointment types. */
  list(query: api.ListAppointmentTypesQuery = {}, options: RequestOptions = {}): Promise<Page<api.AppointmentTypeOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/appointment-types", ids, query, options };
    return this.transport.fetchPage<api.AppointmentTypeOut>(request);
  }

  /** Create an appointment type. */
  create(body: api.AppointmentTypeCreate, options: RequestOptions = {}): Promise<api.AppointmentTypeOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/appointment-types", ids, body, options };
    return this.transport.fetchJson<api.AppointmentTypeOut>(request);
  }

  /** Delete an appointment type. */
  delete(typeId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { type_id: typeId };
    const request = { method: "DELETE", path: "/v1/appointment-types/{type_id}", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get an appointment type. */
  get(typeId: string, options: RequestOptions = {}): Promise<api.AppointmentTypeOut> {
    const ids = { type_id: typeId };
    const request = { method: "GET", path: "/v1/appointment-types/{type_id}", ids, options };
    return this.transport.fetchJson<api.AppointmentTypeOut>(request);
  }

  /** Update an appointment type. */
  update(typeId: string, body: api.AppointmentTypeUpdate, options: RequestOptions = {}): Promise<api.AppointmentTypeOut> {
    const ids = { type_id: typeId };
    const request = { method: "PATCH", path: "/v1/appointment-types/{type_id}", ids, body, options };
    return this.transport.fetchJson<api.AppointmentTypeOut>(request);
  }

  /** List free times of an appointment type. */
  listFreeTimes(typeId: string, query: api.ListFreeTimesQuery = {}, options: RequestOptions = {}): Promise<api.AvailabilityOut> {
    const ids = { type_id: typeId };
    const request = { method: "GET", path: "/v1/appointment-types/{type_id}/availability", ids, query, options };
    return this.transport.fetchJson<api.AvailabilityOut>(request);
  }
}

/** Methods of `appointments`. */
export class Appointments {
  constructor(private readonly transport: Transport) {}

  /** List appointments. */
  list(query: api.ListAppointmentsQuery = {}, options: RequestOptions = {}): Promise<Page<api.AppointmentOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/appointments", ids, query, options };
    return this.transport.fetchPage<api.AppointmentOut>(request);
  }

  /** Book an appointment. */
  book(body: api.AppointmentCreate, options: RequestOptions = {}): Promise<api.AppointmentOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/appointments", ids, body, options };
    return this.transport.fetchJson<api.AppointmentOut>(request);
  }

  /** Cancel an appointment. */
  cancel(appointmentId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { appointment_id: appointmentId };
    const request = { method: "DELETE", path: "/v1/appointments/{appointment_id}", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get an appointment. */
  get(appointmentId: string, options: RequestOptions = {}): Promise<api.AppointmentOut> {
    const ids = { appointment_id: appointmentId };
    const request = { method: "GET", path: "/v1/appointments/{appointment_id}", ids, options };
    return this.transport.fetchJson<api.AppointmentOut>(request);
  }

  /** Move or change an appointment. */
  update(appointmentId: string, body: api.AppointmentUpdate, options: RequestOptions = {}): Promise<api.AppointmentOut> {
    const ids = { appointment_id: appointmentId };
    const request = { method: "PATCH", path: "/v1/appointments/{appointment_id}", ids, body, options };
    return this.transport.fetchJson<api.AppointmentOut>(request);
  }
}

/** Methods of `automations`. */
export class Automations {
  constructor(private readonly transport: Transport) {}

  /** List automations. */
  list(query: api.ListAutomationsQuery = {}, options: RequestOptions = {}): Promise<Page<api.AutomationOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/automations", ids, query, options };
    return this.transport.fetchPage<api.AutomationOut>(request);
  }

  /** Create an automation. */
  create(body: api.AutomationCreate, options: RequestOptions = {}): Promise<api.AutomationOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/automations", ids, body, options };
    return this.transport.fetchJson<api.AutomationOut>(request);
  }

  /** Delete an automation. */
  delete(automationId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { automation_id: automationId };
    const request = { method: "DELETE", path: "/v1/automations/{automation_id}", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get an automation. */
  get(automationId: string, options: RequestOptions = {}): Promise<api.AutomationOut> {
    const ids = { automation_id: automationId };
    const request = { method: "GET", path: "/v1/automations/{automation_id}", ids, options };
    return this.transport.fetchJson<api.AutomationOut>(request);
  }

  /** Update an automation. */
  update(automationId: string, body: api.AutomationUpdate, options: RequestOptions = {}): Promise<api.AutomationOut> {
    const ids = { automation_id: automationId };
    const request = { method: "PATCH", path: "/v1/automations/{automation_id}", ids, body, options };
    return this.transport.fetchJson<api.AutomationOut>(request);
  }

  /** List an automation's runs. */
  listRuns(automationId: string, query: api.ListAutomationRunsQuery = {}, options: RequestOptions = {}): Promise<Page<api.AutomationRunOut>> {
    const ids = { automation_id: automationId };
    const request = { method: "GET", path: "/v1/automations/{automation_id}/runs", ids, query, options };
    return this.transport.fetchPage<api.AutomationRunOut>(request);
  }

  /** Retry a failed run. */
  retryRun(automationId: string, runId: string, options: RequestOptions = {}): Promise<api.AutomationRunOut> {
    const ids = { automation_id: automationId,  run_id: runId };
    const request = { method: "POST", path: "/v1/automations/{automation_id}/runs/{run_id}/retry", ids, options };
    return this.transport.fetchJson<api.AutomationRunOut>(request);
  }
}

/** Methods of `billing`. */
export class Billing {
  constructor(private readonly transport: Transport) {}

  /** Get the balance. */
  getBalance(options: RequestOptions = {}): Promise<api.BalanceOut> {
    const ids = {};
    const request = { method: "GET", path: "/v1/billing/balance", ids, options };
    return this.transport.fetchJson<api.BalanceOut>(request);
  }
}

/** Methods of `browserCall`. */
export class BrowserCall {
  constructor(private readonly transport: Transport) {}

  /** List the phone numbers that a browser can call from. */
  listPhoneNumbers(options: RequestOptions = {}): Promise<api.CallerIds> {
    const ids = {};
    const request = { method: "GET", path: "/v1/browser-call/phone-numbers", ids, options };
    return this.transport.fetchJson<api.CallerIds>(request);
  }

  /** Create a token for calling from a browser or a phone app, and for being rung there. */
  createToken(query: api.CreateBrowserCallTokenQuery = {}, options: RequestOptions = {}): Promise<api.BrowserTokenOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/browser-call/token", ids, query, options };
    return this.transport.fetchJson<api.BrowserTokenOut>(request);
  }
}

/** Methods of `calendars`. */
export class Calendars {
  constructor(private readonly transport: Transport) {}

  /** List connected calendars. */
  list(query: api.ListCalendarsQuery = {}, options: RequestOptions = {}): Promise<Page<api.CalendarOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/calendars", ids, query, options };
    return this.transport.fetchPage<api.CalendarOut>(request);
  }

  /** Connect a calendar. */
  connect(body: api.CalendarCreate, options: RequestOptions = {}): Promise<api.CalendarOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/calendars", ids, body, options };
    return this.transport.fetchJson<api.CalendarOut>(request);
  }

  /** Disconnect a calendar. */
  delete(calendarId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { calendar_id: calendarId };
    const request = { method: "DELETE", path: "/v1/calendars/{calendar_id}", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get a calendar. */
  get(calendarId: string, options: RequestOptions = {}): Promise<api.CalendarOut> {
    const ids = { calendar_id: calendarId };
    const request = { method: "GET", path: "/v1/calendars/{calendar_id}", ids, options };
    return this.transport.fetchJson<api.CalendarOut>(request);
  }

  /** Update a calendar. */
  update(calendarId: string, body: api.CalendarUpdate, options: RequestOptions = {}): Promise<api.CalendarOut> {
    const ids = { calendar_id: calendarId };
    const request = { method: "PATCH", path: "/v1/calendars/{calendar_id}", ids, body, options };
    return this.transport.fetchJson<api.CalendarOut>(request);
  }
}

/** Methods of `calls`. */
export class Calls {
  constructor(private readonly transport: Transport) {}

  /** List calls. */
  list(query: api.ListCallsQuery = {}, options: RequestOptions = {}): Promise<Page<api.CallOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/calls", ids, query, options };
    return this.transport.fetchPage<api.CallOut>(request);
  }

  /** Start an outbound call through an agent. */
  create(body: api.CallCreate, options: RequestOptions = {}): Promise<api.CallOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/calls", ids, body, options };
    return this.transport.fetchJson<api.CallOut>(request);
  }

  /** Get a call. */
  get(callId: string, options: RequestOptions = {}): Promise<api.CallOut> {
    const ids = { call_id: callId };
    const request = { method: "GET", path: "/v1/calls/{call_id}", ids, options };
    return this.transport.fetchJson<api.CallOut>(request);
  }

  /** Stream a call's recording. */
  getRecording(callId: string, options: RequestOptions = {}): Promise<ArrayBuffer> {
    const ids = { call_id: callId };
    const request = { method: "GET", path: "/v1/calls/{call_id}/recording", ids, options };
    return this.transport.fetchBytes(request);
  }

  /** Get a link to a call's recording. */
  getRecordingUrl(callId: string, options: RequestOptions = {}): Promise<api.RecordingLinkOut> {
    const ids = { call_id: callId };
    const request = { method: "GET", path: "/v1/calls/{call_id}/recording-url", ids, options };
    return this.transport.fetchJson<api.RecordingLinkOut>(request);
  }

  /** Get a call's transcript. */
  getTranscript(callId: string, options: RequestOptions = {}): Promise<api.TranscriptEntryOut[]> {
    const ids = { call_id: callId };
    const request = { method: "GET", path: "/v1/calls/{call_id}/transcript", ids, options };
    return this.transport.fetchJson<api.TranscriptEntryOut[]>(request);
  }
}

/** Methods of `campaigns`. */
export class Campaigns {
  constructor(private readonly transport: Transport) {}

  /** List campaigns. */
  list(query: api.ListCampaignsQuery = {}, options: RequestOptions = {}): Promise<Page<api.CampaignOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/campaigns", ids, query, options };
    return this.transport.fetchPage<api.CampaignOut>(request);
  }

  /** Create a campaign. */
  create(body: api.CampaignCreate, options: RequestOptions = {}): Promise<api.CampaignOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/campaigns", ids, body, options };
    return this.transport.fetchJson<api.CampaignOut>(request);
  }

  /** Delete a campaign. */
  delete(campaignId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { campaign_id: campaignId };
    const request = { method: "DELETE", path: "/v1/campaigns/{campaign_id}", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get a campaign. */
  get(campaignId: string, options: RequestOptions = {}): Promise<api.CampaignOut> {
    const ids = { campaign_id: campaignId };
    const request = { method: "GET", path: "/v1/campaigns/{campaign_id}", ids, options };
    return this.transport.fetchJson<api.CampaignOut>(request);
  }

  /** Cancel a campaign for good. */
  cancel(campaignId: string, options: RequestOptions = {}): Promise<api.CampaignOut> {
    const ids = { campaign_id: campaignId };
    const request = { method: "POST", path: "/v1/campaigns/{campaign_id}/cancel", ids, options };
    return this.transport.fetchJson<api.CampaignOut>(request);
  }

  /** List a campaign's contacts. */
  listContacts(campaignId: string, query: api.ListCampaignContactsQuery = {}, options: RequestOptions = {}): Promise<Page<api.CampaignContactOut>> {
    const ids = { campaign_id: campaignId };
    const request = { method: "GET", path: "/v1/campaigns/{campaign_id}/contacts", ids, query, options };
    return this.transport.fetchPage<api.CampaignContactOut>(request);
  }

  /** Pause a campaign. */
  pause(campaignId: string, options: RequestOptions = {}): Promise<api.CampaignOut> {
    const ids = { campaign_id: campaignId };
    const request = { method: "POST", path: "/v1/campaigns/{campaign_id}/pause", ids, options };
    return this.transport.fetchJson<api.CampaignOut>(request);
  }

  /** Resume a paused campaign. */
  resume(campaignId: string, options: RequestOptions = {}): Promise<api.CampaignOut> {
    const ids = { campaign_id: campaignId };
    const request = { method: "POST", path: "/v1/campaigns/{campaign_id}/resume", ids, options };
    return this.transport.fetchJson<api.CampaignOut>(request);
  }

  /** Start a campaign. */
  start(campaignId: string, options: RequestOptions = {}): Promise<api.CampaignOut> {
    const ids = { campaign_id: campaignId };
    const request = { method: "POST", path: "/v1/campaigns/{campaign_id}/start", ids, options };
    return this.transport.fetchJson<api.CampaignOut>(request);
  }
}

/** Methods of `contacts`. */
export class Contacts {
  constructor(private readonly transport: Transport) {}

  /** List contacts. */
  list(query: api.ListContactsQuery = {}, options: RequestOptions = {}): Promise<Page<api.ContactOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/contacts", ids, query, options };
    return this.transport.fetchPage<api.ContactOut>(request);
  }

  /** Create a contact. */
  create(body: api.ContactCreate, options: RequestOptions = {}): Promise<api.ContactOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/contacts", ids, body, options };
    return this.transport.fetchJson<api.ContactOut>(request);
  }

  /** Delete a contact. */
  delete(contactId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { contact_id: contactId };
    const request = { method: "DELETE", path: "/v1/contacts/{contact_id}", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get a contact. */
  get(contactId: string, options: RequestOptions = {}): Promise<api.ContactOut> {
    const ids = { contact_id: contactId };
    const request = { method: "GET", path: "/v1/contacts/{contact_id}", ids, options };
    return this.transport.fetchJson<api.ContactOut>(request);
  }

  /** Update a contact. */
  update(contactId: string, body: api.ContactUpdate, options: RequestOptions = {}): Promise<api.ContactOut> {
    const ids = { contact_id: contactId };
    const request = { method: "PATCH", path: "/v1/contacts/{contact_id}", ids, body, options };
    return this.transport.fetchJson<api.ContactOut>(request);
  }
}

/** Methods of `doNotCall`. */
export class DoNotCall {
  constructor(private readonly transport: Transport) {}

  /** List the numbers on the do-not-call list. */
  listEntries(query: api.ListDoNotCallEntriesQuery = {}, options: RequestOptions = {}): Promise<Page<api.DoNotCallOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/do-not-call", ids, query, options };
    return this.transport.fetchPage<api.DoNotCallOut>(request);
  }

  /** Add a number to the do-not-call list. */
  createEntry(body: api.DoNotCallCreate, options: RequestOptions = {}): Promise<api.DoNotCallOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/do-not-call", ids, body, options };
    return this.transport.fetchJson<api.DoNotCallOut>(request);
  }

  /** Remove an entry from the do-not-call list. */
  deleteEntry(entryId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { entry_id: entryId };
    const request = { method: "DELETE", path: "/v1/do-not-call/{entry_id}", ids, options };
    return this.transport.fetchNothing(request);
  }
}

/** Methods of `documents`. */
export class Documents {
  constructor(private readonly transport: Transport) {}

  /** Delete a document. */
  delete(docId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { doc_id: docId };
    const request = { method: "DELETE", path: "/v1/documents/{doc_id}", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get a document. */
  get(docId: string, options: RequestOptions = {}): Promise<api.DocumentOut> {
    const ids = { doc_id: docId };
    const request = { method: "GET", path: "/v1/documents/{doc_id}", ids, options };
    return this.transport.fetchJson<api.DocumentOut>(request);
  }
}

/** Methods of `exports`. */
export class Exports {
  constructor(private readonly transport: Transport) {}

  /** Export calls. */
  exportCalls(query: api.ExportCallsQuery = {}, options: RequestOptions = {}): Promise<ArrayBuffer> {
    const ids = {};
    const request = { method: "GET", path: "/v1/exports/calls", ids, query, options };
    return this.transport.fetchBytes(request);
  }

  /** Export a campaign's contacts with their results. */
  exportCampaignContacts(query: api.ExportCampaignContactsQuery, options: RequestOptions = {}): Promise<ArrayBuffer> {
    const ids = {};
    const request = { method: "GET", path: "/v1/exports/campaign-contacts", ids, query, options };
    return this.transport.fetchBytes(request);
  }

  /** Export contacts. */
  exportContacts(query: api.ExportContactsQuery = {}, options: RequestOptions = {}): Promise<ArrayBuffer> {
    const ids = {};
    const request = { method: "GET", path: "/v1/exports/contacts", ids, query, options };
    return this.transport.fetchBytes(request);
  }

  /** Export text messages. */
  exportMessages(query: api.ExportMessagesQuery = {}, options: RequestOptions = {}): Promise<ArrayBuffer> {
    const ids = {};
    const request = { method: "GET", path: "/v1/exports/messages", ids, query, options };
    return this.transport.fetchBytes(request);
  }

  /** Export the transcripts of calls. */
  exportTranscripts(query: api.ExportTranscriptsQuery = {}, options: RequestOptions = {}): Promise<ArrayBuffer> {
    const ids = {};
    const request = { method: "GET", path: "/v1/exports/transcripts", ids, query, options };
    return this.transport.fetchBytes(request);
  }

  /** Export the usage of the last twelve months. */
  exportUsage(query: api.ExportUsageQuery = {}, options: RequestOptions = {}): Promise<ArrayBuffer> {
    const ids = {};
    const request = { method: "GET", path: "/v1/exports/usage", ids, query, options };
    return this.transport.fetchBytes(request);
  }
}

/** Methods of `integrations`. */
export class Integrations {
  constructor(private readonly transport: Transport) {}

  /** Set the integration's credentials. */
  change(body: api.IntegrationUpdate, options: RequestOptions = {}): Promise<api.IntegrationOut> {
    const ids = {};
    const request = { method: "PUT", path: "/v1/integrations", ids, body, options };
    return this.transport.fetchJson<api.IntegrationOut>(request);
  }
}

/** Methods of `knowledgeBases`. */
export class KnowledgeBases {
  constructor(private readonly transport: Transport) {}

  /** List knowledge bases. */
  list(query: api.ListKnowledgeBasesQuery = {}, options: RequestOptions = {}): Promise<Page<api.KnowledgeBaseOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/knowledge-bases", ids, query, options };
    return this.transport.fetchPage<api.KnowledgeBaseOut>(request);
  }

  /** Create a knowledge base. */
  create(body: api.KnowledgeBaseCreate, options: RequestOptions = {}): Promise<api.KnowledgeBaseOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/knowledge-bases", ids, body, options };
    return this.transport.fetchJson<api.KnowledgeBaseOut>(request);
  }

  /** Delete a knowledge base with its documents. */
  delete(kbId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { kb_id: kbId };
    const request = { method: "DELETE", path: "/v1/knowledge-bases/{kb_id}", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get a knowledge base. */
  get(kbId: string, options: RequestOptions = {}): Promise<api.KnowledgeBaseOut> {
    const ids = { kb_id: kbId };
    const request = { method: "GET", path: "/v1/knowledge-bases/{kb_id}", ids, options };
    return this.transport.fetchJson<api.KnowledgeBaseOut>(request);
  }

  /** List a knowledge base's documents. */
  listDocuments(kbId: string, query: api.ListDocumentsQuery = {}, options: RequestOptions = {}): Promise<Page<api.DocumentOut>> {
    const ids = { kb_id: kbId };
    const request = { method: "GET", path: "/v1/knowledge-bases/{kb_id}/documents", ids, query, options };
    return this.transport.fetchPage<api.DocumentOut>(request);
  }

  /** Add a document. */
  createDocument(kbId: string, body: api.DocumentCreate, options: RequestOptions = {}): Promise<api.DocumentOut> {
    const ids = { kb_id: kbId };
    const request = { method: "POST", path: "/v1/knowledge-bases/{kb_id}/documents", ids, body, options };
    return this.transport.fetchJson<api.DocumentOut>(request);
  }

  /** Search knowledge bases. */
  search(body: api.KnowledgeSearch, options: RequestOptions = {}): Promise<api.PassagesOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/knowledge-bases/search", ids, body, options };
    return this.transport.fetchJson<api.PassagesOut>(request);
  }
}

/** Methods of `phoneNumbers`. */
export class PhoneNumbers {
  constructor(private readonly transport: Transport) {}

  /** List phone numbers. */
  list(query: api.ListPhoneNumbersQuery = {}, options: RequestOptions = {}): Promise<Page<api.PhoneNumberOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/phone-numbers", ids, query, options };
    return this.transport.fetchPage<api.PhoneNumberOut>(request);
  }

  /** Buy a phone number. */
  buy(body: api.PhoneNumberBuy, options: RequestOptions = {}): Promise<api.PhoneNumberOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/phone-numbers", ids, body, options };
    return this.transport.fetchJson<api.PhoneNumberOut>(request);
  }

  /** Release a phone number. */
  release(numberId: string, options: RequestOptions = {}): Promise<api.PhoneNumberOut> {
    const ids = { number_id: numberId };
    const request = { method: "DELETE", path: "/v1/phone-numbers/{number_id}", ids, options };
    return this.transport.fetchJson<api.PhoneNumberOut>(request);
  }

  /** Update a phone number. */
  update(numberId: string, body: api.PhoneNumberUpdate, options: RequestOptions = {}): Promise<api.PhoneNumberOut> {
    const ids = { number_id: numberId };
    const request = { method: "PUT", path: "/v1/phone-numbers/{number_id}", ids, body, options };
    return this.transport.fetchJson<api.PhoneNumberOut>(request);
  }

  /** Enter phone numbers that a trunk has. */
  enter(body: api.PhoneNumbersImport, options: RequestOptions = {}): Promise<api.EnteredNumbers> {
    const ids = {};
    const request = { method: "POST", path: "/v1/phone-numbers/enter", ids, body, options };
    return this.transport.fetchJson<api.EnteredNumbers>(request);
  }

  /** Search phone numbers to buy. */
  search(body: api.NumberSearch, options: RequestOptions = {}): Promise<api.AvailableNumbers> {
    const ids = {};
    const request = { method: "POST", path: "/v1/phone-numbers/search", ids, body, options };
    return this.transport.fetchJson<api.AvailableNumbers>(request);
  }
}

/** Methods of `privacyRequests`. */
export class PrivacyRequests {
  constructor(private readonly transport: Transport) {}

  /** List privacy requests. */
  list(query: api.ListPrivacyRequestsQuery = {}, options: RequestOptions = {}): Promise<Page<api.PrivacyRequestOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/privacy-requests", ids, query, options };
    return this.transport.fetchPage<api.PrivacyRequestOut>(request);
  }

  /** Request a copy of a person's data, or its deletion. */
  create(body: api.PrivacyRequestCreate, options: RequestOptions = {}): Promise<api.PrivacyRequestOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/privacy-requests", ids, body, options };
    return this.transport.fetchJson<api.PrivacyRequestOut>(request);
  }

  /** Get a privacy request. */
  get(requestId: string, options: RequestOptions = {}): Promise<api.PrivacyRequestOut> {
    const ids = { request_id: requestId };
    const request = { method: "GET", path: "/v1/privacy-requests/{request_id}", ids, options };
    return this.transport.fetchJson<api.PrivacyRequestOut>(request);
  }

  /** Get a link to the file of an export. */
  getExportUrl(requestId: string, options: RequestOptions = {}): Promise<api.ExportLinkOut> {
    const ids = { request_id: requestId };
    const request = { method: "GET", path: "/v1/privacy-requests/{request_id}/export-url", ids, options };
    return this.transport.fetchJson<api.ExportLinkOut>(request);
  }
}

/** Methods of `sms`. */
export class Sms {
  constructor(private readonly transport: Transport) {}

  /** Send a text message. */
  send(body: api.SmsCreate, options: RequestOptions = {}): Promise<api.SmsMessageOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/sms", ids, body, options };
    return this.transport.fetchJson<api.SmsMessageOut>(request);
  }

  /** List text message conversations. */
  listConversations(query: api.ListSmsConversationsQuery = {}, options: RequestOptions = {}): Promise<Page<api.SmsConversationOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/sms/conversations", ids, query, options };
    return this.transport.fetchPage<api.SmsConversationOut>(request);
  }

  /** View a conversation. */
  getConversation(conversationId: string, options: RequestOptions = {}): Promise<api.SmsConversationOut> {
    const ids = { conversation_id: conversationId };
    const request = { method: "GET", path: "/v1/sms/conversations/{conversation_id}", ids, options };
    return this.transport.fetchJson<api.SmsConversationOut>(request);
  }

  /** Assign or resolve a conversation. */
  updateConversation(conversationId: string, body: api.SmsConversationUpdate, options: RequestOptions = {}): Promise<api.SmsConversationOut> {
    const ids = { conversation_id: conversationId };
    const request = { method: "PATCH", path: "/v1/sms/conversations/{conversation_id}", ids, body, options };
    return this.transport.fetchJson<api.SmsConversationOut>(request);
  }

  /** List the messages of a conversation. */
  listMessages(conversationId: string, query: api.ListSmsMessagesQuery = {}, options: RequestOptions = {}): Promise<Page<api.SmsMessageOut>> {
    const ids = { conversation_id: conversationId };
    const request = { method: "GET", path: "/v1/sms/conversations/{conversation_id}/messages", ids, query, options };
    return this.transport.fetchPage<api.SmsMessageOut>(request);
  }

  /** Mark a conversation as read by the user of the access token. */
  readConversation(conversationId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { conversation_id: conversationId };
    const request = { method: "POST", path: "/v1/sms/conversations/{conversation_id}/read", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get a file of a received message. */
  getMedia(mediaId: string, options: RequestOptions = {}): Promise<ArrayBuffer> {
    const ids = { media_id: mediaId };
    const request = { method: "GET", path: "/v1/sms/media/{media_id}", ids, options };
    return this.transport.fetchBytes(request);
  }

  /** Get a link to a file of a received message. */
  getMediaUrl(mediaId: string, options: RequestOptions = {}): Promise<api.MediaLinkOut> {
    const ids = { media_id: mediaId };
    const request = { method: "GET", path: "/v1/sms/media/{media_id}/url", ids, options };
    return this.transport.fetchJson<api.MediaLinkOut>(request);
  }
}

/** Methods of `usage`. */
export class Usage {
  constructor(private readonly transport: Transport) {}

  /** Get the current month's usage. */
  get(options: RequestOptions = {}): Promise<api.UsageOut> {
    const ids = {};
    const request = { method: "GET", path: "/v1/usage", ids, options };
    return this.transport.fetchJson<api.UsageOut>(request);
  }

  /** Get usage by month. */
  getHistory(query: api.GetUsageHistoryQuery = {}, options: RequestOptions = {}): Promise<api.UsageHistoryOut> {
    const ids = {};
    const request = { method: "GET", path: "/v1/usage/history", ids, query, options };
    return this.transport.fetchJson<api.UsageHistoryOut>(request);
  }
}

/** Methods of `webhookDeliveries`. */
export class WebhookDeliveries {
  constructor(private readonly transport: Transport) {}

  /** List all deliveries. */
  list(query: api.ListWebhookDeliveriesQuery = {}, options: RequestOptions = {}): Promise<Page<api.DeliveryOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/webhook-deliveries", ids, query, options };
    return this.transport.fetchPage<api.DeliveryOut>(request);
  }

  /** Get a delivery. */
  get(deliveryId: string, options: RequestOptions = {}): Promise<api.DeliveryOut> {
    const ids = { delivery_id: deliveryId };
    const request = { method: "GET", path: "/v1/webhook-deliveries/{delivery_id}", ids, options };
    return this.transport.fetchJson<api.DeliveryOut>(request);
  }

  /** List a delivery's attempts. */
  listDeliveryAttempts(deliveryId: string, options: RequestOptions = {}): Promise<api.AttemptsOut> {
    const ids = { delivery_id: deliveryId };
    const request = { method: "GET", path: "/v1/webhook-deliveries/{delivery_id}/attempts", ids, options };
    return this.transport.fetchJson<api.AttemptsOut>(request);
  }

  /** Replay a delivery. */
  replayDelivery(deliveryId: string, options: RequestOptions = {}): Promise<api.DeliveryOut> {
    const ids = { delivery_id: deliveryId };
    const request = { method: "POST", path: "/v1/webhook-deliveries/{delivery_id}/replay", ids, options };
    return this.transport.fetchJson<api.DeliveryOut>(request);
  }
}

/** Methods of `webhookEndpoints`. */
export class WebhookEndpoints {
  constructor(private readonly transport: Transport) {}

  /** List webhook endpoints. */
  list(options: RequestOptions = {}): Promise<api.EndpointOut[]> {
    const ids = {};
    const request = { method: "GET", path: "/v1/webhook-endpoints", ids, options };
    return this.transport.fetchJson<api.EndpointOut[]>(request);
  }

  /** Create a webhook endpoint. */
  create(body: api.EndpointCreate, options: RequestOptions = {}): Promise<api.EndpointCreated> {
    const ids = {};
    const request = { method: "POST", path: "/v1/webhook-endpoints", ids, body, options };
    return this.transport.fetchJson<api.EndpointCreated>(request);
  }

  /** Delete a webhook endpoint. */
  delete(endpointId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { endpoint_id: endpointId };
    const request = { method: "DELETE", path: "/v1/webhook-endpoints/{endpoint_id}", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get a webhook endpoint. */
  get(endpointId: string, options: RequestOptions = {}): Promise<api.EndpointOut> {
    const ids = { endpoint_id: endpointId };
    const request = { method: "GET", path: "/v1/webhook-endpoints/{endpoint_id}", ids, options };
    return this.transport.fetchJson<api.EndpointOut>(request);
  }

  /** Update a webhook endpoint. */
  update(endpointId: string, body: api.EndpointUpdate, options: RequestOptions = {}): Promise<api.EndpointOut> {
    const ids = { endpoint_id: endpointId };
    const request = { method: "PATCH", path: "/v1/webhook-endpoints/{endpoint_id}", ids, body, options };
    return this.transport.fetchJson<api.EndpointOut>(request);
  }

  /** List an endpoint's deliveries. */
  listDeliveries(endpointId: string, query: api.ListWebhookEndpointDeliveriesQuery = {}, options: RequestOptions = {}): Promise<Page<api.DeliveryOut>> {
    const ids = { endpoint_id: endpointId };
    const request = { method: "GET", path: "/v1/webhook-endpoints/{endpoint_id}/deliveries", ids, query, options };
    return this.transport.fetchPage<api.DeliveryOut>(request);
  }

  /** Replay an endpoint's failed deliveries of a period. */
  replayFailedDeliveries(endpointId: string, body: api.ReplayRequest, options: RequestOptions = {}): Promise<api.ReplayOut> {
    const ids = { endpoint_id: endpointId };
    const request = { method: "POST", path: "/v1/webhook-endpoints/{endpoint_id}/replay-failed", ids, body, options };
    return this.transport.fetchJson<api.ReplayOut>(request);
  }

  /** Rotate an endpoint's secret. */
  rotateWebhookSecret(endpointId: string, query: api.RotateWebhookSecretQuery = {}, options: RequestOptions = {}): Promise<api.RotatedSecret> {
    const ids = { endpoint_id: endpointId };
    const request = { method: "POST", path: "/v1/webhook-endpoints/{endpoint_id}/rotate-secret", ids, query, options };
    return this.transport.fetchJson<api.RotatedSecret>(request);
  }

  /** Send a test event. */
  sendTestEvent(endpointId: string, options: RequestOptions = {}): Promise<api.DeliveryOut> {
    const ids = { endpoint_id: endpointId };
    const request = { method: "POST", path: "/v1/webhook-endpoints/{endpoint_id}/test", ids, options };
    return this.transport.fetchJson<api.DeliveryOut>(request);
  }
}

/** Methods of `webhookEvents`. */
export class WebhookEvents {
  constructor(private readonly transport: Transport) {}

  /** List the events that endpoints can subscribe to. */
  list(options: RequestOptions = {}): Promise<api.EventsOut> {
    const ids = {};
    const request = { method: "GET", path: "/v1/webhook-events", ids, options };
    return this.transport.fetchJson<api.EventsOut>(request);
  }
}

/** Methods of `widgets`. */
export class Widgets {
  constructor(private readonly transport: Transport) {}

  /** List widgets. */
  list(query: api.ListWidgetsQuery = {}, options: RequestOptions = {}): Promise<Page<api.WidgetOut>> {
    const ids = {};
    const request = { method: "GET", path: "/v1/widgets", ids, query, options };
    return this.transport.fetchPage<api.WidgetOut>(request);
  }

  /** Create a widget. */
  create(body: api.WidgetCreate, options: RequestOptions = {}): Promise<api.WidgetOut> {
    const ids = {};
    const request = { method: "POST", path: "/v1/widgets", ids, body, options };
    return this.transport.fetchJson<api.WidgetOut>(request);
  }

  /** Delete a widget. */
  delete(widgetId: string, options: RequestOptions = {}): Promise<void> {
    const ids = { widget_id: widgetId };
    const request = { method: "DELETE", path: "/v1/widgets/{widget_id}", ids, options };
    return this.transport.fetchNothing(request);
  }

  /** Get a widget. */
  get(widgetId: string, options: RequestOptions = {}): Promise<api.WidgetOut> {
    const ids = { widget_id: widgetId };
    const request = { method: "GET", path: "/v1/widgets/{widget_id}", ids, options };
    return this.transport.fetchJson<api.WidgetOut>(request);
  }

  /** Update a widget. */
  update(widgetId: string, body: api.WidgetUpdate, options: RequestOptions = {}): Promise<api.WidgetOut> {
    const ids = { widget_id: widgetId };
    const request = { method: "PATCH", path: "/v1/widgets/{widget_id}", ids, body, options };
    return this.transport.fetchJson<api.WidgetOut>(request);
  }
}

/** All resources of the API. */
export class Resources {
  readonly agents: Agents;
  readonly analytics: Analytics;
  readonly appointmentTypes: AppointmentTypes;
  readonly appointments: Appointments;
  readonly automations: Automations;
  readonly billing: Billing;
  readonly browserCall: BrowserCall;
  readonly calendars: Calendars;
  readonly calls: Calls;
  readonly campaigns: Campaigns;
  readonly contacts: Contacts;
  readonly doNotCall: DoNotCall;
  readonly documents: Documents;
  readonly exports: Exports;
  readonly integrations: Integrations;
  readonly knowledgeBases: KnowledgeBases;
  readonly phoneNumbers: PhoneNumbers;
  readonly privacyRequests: PrivacyRequests;
  readonly sms: Sms;
  readonly usage: Usage;
  readonly webhookDeliveries: WebhookDeliveries;
  readonly webhookEndpoints: WebhookEndpoints;
  readonly webhookEvents: WebhookEvents;
  readonly widgets: Widgets;

  constructor(transport: Transport) {
    this.agents = new Agents(transport);
    this.analytics = new Analytics(transport);
    this.appointmentTypes = new AppointmentTypes(transport);
    this.appointments = new Appointments(transport);
    this.automations = new Automations(transport);
    this.billing = new Billing(transport);
    this.browserCall = new BrowserCall(transport);
    this.calendars = new Calendars(transport);
    this.calls = new Calls(transport);
    this.campaigns = new Campaigns(transport);
    this.contacts = new Contacts(transport);
    this.doNotCall = new DoNotCall(transport);
    this.documents = new Documents(transport);
    this.exports = new Exports(transport);
    this.integrations = new Integrations(transport);
    this.knowledgeBases = new KnowledgeBases(transport);
    this.phoneNumbers = new PhoneNumbers(transport);
    this.privacyRequests = new PrivacyRequests(transport);
    this.sms = new Sms(transport);
    this.usage = new Usage(transport);
    this.webhookDeliveries = new WebhookDeliveries(transport);
    this.webhookEndpoints = new WebhookEndpoints(transport);
    this.webhookEvents = new WebhookEvents(transport);
    this.widgets = new Widgets(transport);
  }
}