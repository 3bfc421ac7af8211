"""Events that webhooks deliver. Generated: run `make clients` instead of editing."""

from typing import TypeAlias

from switchboard_client.generated.models import (
    AppointmentBookedDelivery,
    AppointmentCanceledDelivery,
    AppointmentMovedDelivery,
    AppointmentReminderDelivery,
    CalendarDisconnectedDelivery,
    CallCompletedDelivery,
    CallFailedDelivery,
    CallHandedOffDelivery,
    CallRingingDelivery,
    CallStartedDelivery,
    CallTakeoverDelivery,
    CallTranscriptReadyDelivery,
    SimulationCompletedDelivery,
    SmsReceivedDelivery,
    SmsSentDelivery,
)

KnownEvent: TypeAlias = (
    CallStartedDelivery
    | CallRingingDelivery
    | CallCompletedDelivery
    | CallFailedDelivery
    | CallTakeoverDelivery
    | CallHandedOffDelivery
    | CallTranscriptReadyDelivery
    | SmsReceivedDelivery
    | SmsSentDelivery
    | SimulationCompletedDelivery
    | AppointmentBookedDelivery
    | AppointmentMovedDelivery
    | AppointmentCanceledDelivery
    | AppointmentReminderDelivery
    | CalendarDisconnectedDelivery
)
EVENT_MODELS: dict[str, type[KnownEvent]] = {
    "call.started": CallStartedDelivery,
    "call.ringing": CallRingingDelivery,
    "call.completed": CallCompletedDelivery,
    "call.failed": CallFailedDelivery,
    "call.takeover": CallTakeoverDelivery,
    "call.handed_off": CallHandedOffDelivery,
    "call.transcript.ready": CallTranscriptReadyDelivery,
    "sms.received": SmsReceivedDelivery,
    "sms.sent": SmsSentDelivery,
    "simulation.completed": SimulationCompletedDelivery,
    "appointment.booked": AppointmentBookedDelivery,
    "appointment.moved": AppointmentMovedDelivery,
    "appointment.canceled": AppointmentCanceledDelivery,
    "appointment.reminder": AppointmentReminderDelivery,
    "calendar.disconnected": CalendarDisconnectedDelivery,
}
"""Model of each event, by the event's name."""
