"""Streaming speech-to-text and text-to-speech vendors."""

from switchboard.plugin_sdk import ProviderSettings, SpeechToTextProvider, TextToSpeechProvider, hookimpl

from switchboard_speech.assemblyai import AssemblyAISpeechToText
from switchboard_speech.azure_recognition import AzureSpeechToText
from switchboard_speech.azure_speech import AzureTextToSpeech
from switchboard_speech.cartesia import CartesiaTextToSpeech
from switchboard_speech.deepgram import DeepgramSpeechToText, DeepgramTextToSpeech
from switchboard_speech.elevenlabs import ElevenLabsTextToSpeech
from switchboard_speech.google_recognition import GoogleSpeechToText
from switchboard_speech.google_speech import GoogleTextToSpeech
from switchboard_speech.ink import CartesiaSpeechToText
from switchboard_speech.scribe import ElevenLabsSpeechToText


@hookimpl
def speech_to_text_providers() -> list[type[SpeechToTextProvider[ProviderSettings]]]:
    return [
        DeepgramSpeechToText,
        AssemblyAISpeechToText,
        ElevenLabsSpeechToText,
        CartesiaSpeechToText,
        AzureSpeechToText,
        GoogleSpeechToText,
    ]


@hookimpl
def text_to_speech_providers() -> list[type[TextToSpeechProvider[ProviderSettings]]]:
    return [ElevenLabsTextToSpeech, DeepgramTextToSpeech, CartesiaTextToSpeech, AzureTextToSpeech, GoogleTextToSpeech]
