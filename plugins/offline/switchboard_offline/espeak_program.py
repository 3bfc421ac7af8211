"""eSpeak NG as a program: `python espeak_program.py LIBRARY DATA`.

eSpeak NG is under the GPL, version 3 or later, so its library is loaded by this program only, and never by a process of
Switchboard. eSpeak NG's own program is not in the wheel of `espeakng_loader`, and does not say when a word begins.

A request is a line of JSON on standard input: `{"voice", "text", "words_per_minute"}`, or `{}` for the list of voices.
The response is a line of JSON on standard output: `{"voices"}`, or `{"sample_rate", "words", "size"}` and `size` bytes
of 16-bit samples, or `{"unknown_voice"}`. The program ends with its input, and so with the process that started it.

It needs only Python's standard library, so that it starts without `site-packages`.
"""

import ctypes
import json
import sys
from collections.abc import Iterator
from ctypes import CFUNCTYPE, POINTER, Structure, Union, c_char_p, c_int, c_short, c_ubyte, c_uint, c_void_p

RETRIEVAL, UTF8, RATE_PARAMETER, EVENT_END, EVENT_WORD = 1, 1, 1, 0, 1
GENDERS = {1: "male", 2: "female"}


class _EventId(Union):
    _fields_ = (("number", c_int), ("name", c_char_p), ("string", c_ubyte * 8))


class _Event(Structure):
    _fields_ = (
        ("type", c_int),
        ("unique_identifier", c_uint),
        ("text_position", c_int),
        ("length", c_int),
        ("audio_position", c_int),
        ("sample", c_int),
        ("user_data", c_void_p),
        ("id", _EventId),
    )


class _Voice(Structure):
    _fields_ = (
        ("name", c_char_p),
        ("languages", c_void_p),
        ("identifier", c_char_p),
        ("gender", c_ubyte),
        ("age", c_ubyte),
        ("variant", c_ubyte),
        ("xx1", c_ubyte),
        ("score", c_int),
        ("spare", c_void_p),
    )


_Callback = CFUNCTYPE(c_int, POINTER(c_short), c_int, POINTER(_Event))


class _Espeak:
    """The loaded library."""

    def __init__(self, library: str, data: str) -> None:
        self._library = ctypes.CDLL(library)
        self._library.espeak_ListVoices.restype = POINTER(POINTER(_Voice))
        self._sample_rate = self._library.espeak_Initialize(RETRIEVAL, 0, data.encode(), 0)
        if self._sample_rate <= 0:
            sys.exit("espeak-ng cannot be started")
        self._samples: list[bytes] = []
        self._words: list[tuple[int, int]] = []
        self._callback = _Callback(self._take)
        self._library.espeak_SetSynthCallback(self._callback)
        self._voices = list(self._iterate_voices())
        self._identifiers = {voice["id"]: voice["identifier"] for voice in self._voices}

    def list_voices(self) -> dict[str, object]:
        return {"voices": self._voices}

    def synthesize(self, voice: str, text: str, words_per_minute: int) -> tuple[dict[str, object], bytes]:
        """Return the response and its samples. Of each word: its position in the text, and its start in
        milliseconds.
        """
        language, plus, variant = voice.partition("+")
        name = self._identifiers.get(language, language) + plus + variant
        if self._library.espeak_SetVoiceByName(name.encode()) != 0:
            return {"unknown_voice": True}, b""
        self._library.espeak_SetParameter(RATE_PARAMETER, words_per_minute, 0)
        self._samples, self._words = [], []
        data = text.encode(errors="replace")
        self._library.espeak_Synth(data, len(data) + 1, 0, 1, 0, UTF8, None, None)
        self._library.espeak_Synchronize()
        samples = b"".join(self._samples)
        return {"sample_rate": self._sample_rate, "words": self._words, "size": len(samples)}, samples

    def _iterate_voices(self) -> Iterator[dict[str, str]]:
        """Yield each voice, with its language as id, and the library's own name for it."""
        voices, index = self._library.espeak_ListVoices(None), 0
        while voices[index]:
            voice = voices[index].contents
            yield {
                # The first byte is the language's priority.
                "id": ctypes.string_at(voice.languages + 1).decode(),
                "name": voice.name.decode(errors="replace"),
                "gender": GENDERS.get(voice.gender, ""),
                "identifier": voice.identifier.decode(),
            }
            index += 1

    def _take(self, samples: "ctypes._Pointer[c_short]", count: int, events: "ctypes._Pointer[_Event]") -> int:
        if count > 0:
            self._samples.append(ctypes.string_at(samples, count * 2))
        index = 0
        while events[index].type != EVENT_END:
            event = events[index]
            if event.type == EVENT_WORD:
                self._words.append((event.text_position, event.audio_position))
            index += 1
        return 0


def main() -> None:
    """Answer requests until the input ends."""
    espeak, output = _Espeak(sys.argv[1], sys.argv[2]), sys.stdout.buffer
    for line in sys.stdin.buffer:
        request = json.loads(line)
        response, samples = espeak.synthesize(**request) if request else (espeak.list_voices(), b"")
        output.write(json.dumps(response).encode() + b"\n" + samples)
        output.flush()


if __name__ == "__main__":
    main()
