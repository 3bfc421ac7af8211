"""Streaming speech-to-text and text-to-speech vendors."""

from switchboard.plugin_sdk import ProviderSettings, SpeechToTextProvider, TextToSpeechProvider, hookimpl

from switchboard_speech.assemblyai import AssemblyAISpeechToText
from switchboard_speech.azure_speech import AzureSpeechToText, AzureTextToSpeech
from switchboard_speech.cartesia import CartesiaSpeechToText, CartesiaTextToSpeech
from switchboard_speech.deepgram import DeepgramSpeechToText, DeepgramTextToSpeech
from switchboard_speech.elevenlabs import ElevenLabsSpeechToText, ElevenLabsTextToSpeech
from switchboard_speech.google_speech import GoogleSpeechToText, GoogleTextToSpeech


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
