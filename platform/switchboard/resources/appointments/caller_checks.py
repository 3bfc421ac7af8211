"""Checks by which people who call from another number show that an appointment is theirs."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final

from switchboard.foundation.database import WriteSession
from switchboard.resources.appointments.models import Appointment, AppointmentType
from switchboard.resources.appointments.queries import lock_coming_appointments

MOST_FAILED: Final = 5
"""Failed checks after which an appointment is changed from its own number only."""


async def check_caller(
    session: WriteSession, phone_number: str, kinds: Sequence[AppointmentType], answers: Mapping[str, str]
) -> list[Appointment]:
    """Return the coming appointments of a number whose `check_fields` have these answers.

    Letters and digits count, in any case. Each other appointment counts the failure, until its check is closed.
    """
    checks = {kind.id: kind.settings.check_fields for kind in kinds if kind.settings.check_fields}
    passed = []
    for appointment in await lock_coming_appointments(session, phone_number, list(checks)):
        if appointment.failed_checks >= MOST_FAILED:
            continue
        names = checks[appointment.appointment_type_id]
        asked = [(_simplify(appointment.fields.get(name, "")), _simplify(answers.get(name, ""))) for name in names]
        if all(known and known == said for known, said in asked):
            passed.append(appointment)
        else:
            appointment.failed_checks += 1
    return passed


def _simplify(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", str(text)).casefold()))
