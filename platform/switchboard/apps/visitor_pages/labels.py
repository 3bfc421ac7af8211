"""Texts of the widget in its languages."""

from typing import Final

from quart import request

from switchboard.resources.widgets.models import Widget

LABELS: Final = {
    "en": {
        "open": "Chat with us",
        "close": "Close",
        "conversation": "Conversation",
        "message": "Message",
        "placeholder": "Write a message …",
        "send": "Send",
        "call": "Talk",
        "hang_up": "Hang up",
        "mute": "Mute",
        "microphone": "Your browser asks for access to the microphone.",
        "no_microphone": "The microphone cannot be used. Allow it for this page, or write instead.",
        "ringing": "Connecting …",
        "connected": "Connected. Just speak.",
        "ended": "The call has ended.",
        "typing": "The agent is writing …",
        "notice": "You are talking to an AI agent. The conversation is stored.",
        "you": "You",
        "limit": "There are too many conversations at the moment. Try again in a minute.",
        "spent": "The agent is not available any more today. Try again tomorrow.",
        "failed": "The agent cannot answer at the moment. Try again.",
        "demo": "Try this agent: press the button at the bottom, then write or talk.",
    },
    "de": {
        "open": "Chatten Sie mit uns",
        "close": "Schließen",
        "conversation": "Gespräch",
        "message": "Nachricht",
        "placeholder": "Nachricht schreiben …",
        "send": "Senden",
        "call": "Sprechen",
        "hang_up": "Auflegen",
        "mute": "Stumm",
        "microphone": "Ihr Browser fragt nach dem Mikrofon.",
        "no_microphone": "Das Mikrofon ist nicht verfügbar. Erlauben Sie es für diese Seite, oder schreiben Sie uns.",
        "ringing": "Verbindung wird hergestellt …",
        "connected": "Verbunden. Sprechen Sie einfach.",
        "ended": "Der Anruf ist beendet.",
        "typing": "Der Agent schreibt …",
        "notice": "Sie sprechen mit einem KI-Agenten. Das Gespräch wird gespeichert.",
        "you": "Sie",
        "limit": "Im Moment gibt es zu viele Gespräche. Versuchen Sie es in einer Minute noch einmal.",
        "spent": "Der Agent ist heute nicht mehr verfügbar. Versuchen Sie es morgen noch einmal.",
        "failed": "Der Agent kann im Moment nicht antworten. Versuchen Sie es noch einmal.",
        "demo": "Probieren Sie diesen Agenten aus: Drücken Sie unten auf den Knopf, und schreiben oder sprechen Sie.",
    },
    "es": {
        "open": "Chatee con nosotros",
        "close": "Cerrar",
        "conversation": "Conversación",
        "message": "Mensaje",
        "placeholder": "Escriba un mensaje …",
        "send": "Enviar",
        "call": "Hablar",
        "hang_up": "Colgar",
        "mute": "Silenciar",
        "microphone": "Su navegador pide acceso al micrófono.",
        "no_microphone": "No se puede usar el micrófono. Permítalo para esta página o escríbanos.",
        "ringing": "Conectando …",
        "connected": "Conectado. Ya puede hablar.",
        "ended": "La llamada ha terminado.",
        "typing": "El agente está escribiendo …",
        "notice": "Está hablando con un agente de IA. La conversación se guarda.",
        "you": "Usted",
        "limit": "Hay demasiadas conversaciones en este momento. Inténtelo de nuevo en un minuto.",
        "spent": "El agente ya no está disponible hoy. Inténtelo de nuevo mañana.",
        "failed": "El agente no puede responder en este momento. Inténtelo de nuevo.",
        "demo": "Pruebe este agente: pulse el botón de abajo y escriba o hable.",
    },
    "fr": {
        "open": "Discutez avec nous",
        "close": "Fermer",
        "conversation": "Conversation",
        "message": "Message",
        "placeholder": "Écrivez un message …",
        "send": "Envoyer",
        "call": "Parler",
        "hang_up": "Raccrocher",
        "mute": "Couper le micro",
        "microphone": "Votre navigateur demande l'accès au microphone.",
        "no_microphone": "Le microphone ne peut pas être utilisé. Autorisez-le pour cette page, ou écrivez-nous.",
        "ringing": "Connexion …",
        "connected": "Connecté. Vous pouvez parler.",
        "ended": "L'appel est terminé.",
        "typing": "L'agent écrit …",
        "notice": "Vous parlez à un agent d'IA. La conversation est enregistrée.",
        "you": "Vous",
        "limit": "Il y a trop de conversations en ce moment. Réessayez dans une minute.",
        "spent": "L'agent n'est plus disponible aujourd'hui. Réessayez demain.",
        "failed": "L'agent ne peut pas répondre en ce moment. Réessayez.",
        "demo": "Essayez cet agent : appuyez sur le bouton en bas, puis écrivez ou parlez.",
    },
}


def choose_language(widget: Widget, wanted: str = "") -> str:
    """Return the language of the widget's texts: the page's choice, the widget's, or the first of the browser."""
    for language in (wanted, widget.language or "", request.accept_languages.best_match(list(LABELS)) or ""):
        if language in LABELS:
            return language
    return "en"
