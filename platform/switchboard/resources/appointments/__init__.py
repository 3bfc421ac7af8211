"""Connected calendars, appointment types, and appointments that are booked in the calendars."""
