"""The agent's last sentence in a call that ends because the process stops."""

FAREWELLS = {
    "de": "Wir müssen dieses Gespräch leider wegen Wartungsarbeiten beenden. Bitte rufen Sie gleich noch einmal an.",
    "en": "I am sorry, we have to end this call for maintenance. Please call again in a moment.",
    "es": "Lo siento, tenemos que terminar esta llamada por mantenimiento. Llame de nuevo en un momento, por favor.",
    "fr": "Je suis désolé, nous devons terminer cet appel pour maintenance. Veuillez rappeler dans un instant.",
    "it": "Mi dispiace, dobbiamo terminare la chiamata per manutenzione. La preghiamo di richiamare tra un attimo.",
    "nl": "Het spijt me, we moeten dit gesprek beëindigen voor onderhoud. Belt u zo meteen nog een keer.",
    "pt": "Lamento, temos de terminar esta chamada para manutenção. Por favor, ligue novamente dentro de momentos.",
}
FAREWELL_SECONDS = 10.0
"""Time after which the call ends, whatever has been heard."""


def get_farewell(language: str) -> str:
    """Return the sentence in a language (BCP 47), or in English."""
    return FAREWELLS.get(language.partition("-")[0].lower(), FAREWELLS["en"])
