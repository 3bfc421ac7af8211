"""Switchboard without any account: a carrier in the machine, espeak, pocketsphinx, a scripted model, embeddings."""

from switchboard.plugins import hookimpl

from switchboard_offline.espeak import EspeakTextToSpeech
from switchboard_offline.loopback import LoopbackTelephony
from switchboard_offline.minilm import MiniLMEmbedding
from switchboard_offline.pocketsphinx import PocketsphinxSpeechToText
from switchboard_offline.scripted import ScriptedLLM


@hookimpl
def telephony_providers() -> list[type[LoopbackTelephony]]:
    return [LoopbackTelephony]


@hookimpl
def speech_to_text_providers() -> list[type[PocketsphinxSpeechToText]]:
    return [PocketsphinxSpeechToText]


@hookimpl
def text_to_speech_providers() -> list[type[EspeakTextToSpeech]]:
    return [EspeakTextToSpeech]


@hookimpl
def llm_providers() -> list[type[ScriptedLLM]]:
    return [ScriptedLLM]


@hookimpl
def embedding_providers() -> list[type[MiniLMEmbedding]]:
    return [MiniLMEmbedding]
