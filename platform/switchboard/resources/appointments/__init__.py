"""Appointments: times that agents offer on the phone and book in connected calendars."""
