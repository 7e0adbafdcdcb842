"""MLM replacement: a sentence beside itself with words that a masked language model put there (SimCSE, Table 1).

The paper says no more than that BERT base replaces k % of the words. Here, as in the table's other augmentations, words
are whole ones, separated by white space; marks around a word stay. All chosen words of a sentence are hidden at once,
one [MASK] each whatever their number of pieces, and the sentence passes the model once. What is most probable among the
pieces that are words by themselves takes the word's place; the word itself does not count, so that k % are replaced in
fact. Capital first letters stay.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from sembench.core.lazy import torch
from sembench.core.schema import Strict
from sembench.data.augment import Augmenter, share
from sembench.data.chance import generator
from sembench.data.maker import Say

if TYPE_CHECKING:
    from numpy.random import Generator

# A word with the marks around it.
_PARTS = re.compile(r"([\W_]*)(.*?)([\W_]*)", re.DOTALL)
_WINDOW = 16384  # sentences that are sorted by length together


class MlmReplacement(Augmenter):
    """Replaces words by a masked language model's; a sentence that holds the text [MASK] itself stays as it is."""

    class Config(Strict):
        """How many words are replaced."""

        percent: int = Field(15, gt=0, lt=100, description="of the words: k of the table's 'MLM k %'")
        seed: int = Field(0, ge=0)

    roles = ("sentences", "model")
    encoders = ("model",)
    local = False

    @classmethod
    def copies(
        cls, config: Config, inputs: Mapping[str, Path], sentences: Iterator[list[str]], say: Say
    ) -> Iterator[list[str]]:
        """Yield the copies. Which words are chosen depends on seed, number and words of the row alone.

        Raises:
            SembenchError: the encoder has no masked-language-model head.
        """
        model = WordsOfModel(inputs["model"])
        done = 0
        while window := list(itertools.islice(sentences, _WINDOW)):
            rows = enumerate(window, start=done)
            hidden = [_hidden(words, config.percent, generator(config.seed, row), model.mask) for row, words in rows]
            yield from (sentence.filled(found) for sentence, found in zip(hidden, model.of(hidden), strict=True))
            done += len(window)
            say(f"{done} sentences")


class Hidden(NamedTuple):
    """The words of a sentence of which some are hidden.

    Attributes:
        words: as they were.
        places: numbers of the hidden ones, ascending.
        mask: the text that stands for a hidden word.
    """

    words: list[str]
    places: list[int]
    mask: str

    @property
    def cores(self) -> list[str]:
        """The hidden words, without the marks around them."""
        return [_parts(self.words[place])[1] for place in self.places]

    @property
    def text(self) -> str:
        """The sentence as the model sees it."""
        return " ".join(self._with([self.mask] * len(self.places)))

    def filled(self, found: Sequence[str]) -> list[str]:
        """Return the words with those found in place of the hidden ones.

        There are fewer than hidden ones in a sentence that is longer than the model's input: its last words stay.
        """
        fits = [_like(core, word) for core, word in zip(self.cores, found, strict=False)]
        return self._with([*fits, *self.cores[len(fits) :]])

    def _with(self, cores: Sequence[str]) -> list[str]:
        changed = dict(zip(self.places, cores, strict=True))
        parts = [(_parts(word), changed.get(place)) for place, word in enumerate(self.words)]
        return ["".join((before, core if new is None else new, behind)) for (before, core, behind), new in parts]


def _parts(word: str) -> tuple[str, str, str]:
    """Return the marks before a word, the word, and the marks behind it; marks alone are no word."""
    match = _PARTS.fullmatch(word)
    return (match[1], match[2], match[3]) if match else ("", word, "")


def _like(old: str, new: str) -> str:
    return new[0].upper() + new[1:] if old[0].isupper() else new


def _hidden(words: list[str], percent: int, random: Generator, mask: str) -> Hidden:
    able = [place for place, word in enumerate(words) if _parts(word)[1]]
    if not words or any(mask in word for word in words):
        return Hidden(words, [], mask)
    chosen = random.permutation(len(able))[: share(len(words), percent)]
    return Hidden(words, sorted(able[number] for number in chosen), mask)


class WordsOfModel:
    """What a masked language model puts into hidden places.

    Args:
        folder: model folder of the encoder.

    Raises:
        SembenchError: it has no masked-language-model head.
    """

    def __init__(self, folder: Path) -> None:
        from sembench.encoders.lm_head import load_lm_head
        from sembench.encoders.transformer import load_transformer, read_entry

        self.encoder = load_transformer(folder, read_entry(folder))
        self.head = load_lm_head(folder).to(self.encoder.device).eval()
        self.mask = str(self.head.tokenizer.mask_token)
        self.texts = whole_words(self.head.tokenizer)
        self.numbers: dict[str, list[int]] = {}
        for number, text in self.texts.items():
            self.numbers.setdefault(text.lower(), []).append(number)
        self.barred = torch.full((self.head.model.config.vocab_size,), -torch.inf, device=self.encoder.device)
        self.barred[list(self.texts)] = 0.0

    def of(self, sentences: Sequence[Hidden]) -> list[list[str]]:
        """Return the words for the hidden places of each sentence, in their order."""
        from sembench.encoders.transformer import TOKEN_BUDGET, budgeted

        found: list[list[str]] = [[] for _ in sentences]
        hidden = [number for number, sentence in enumerate(sentences) if sentence.places]
        rows = self.encoder.tokens([sentences[number].text for number in hidden])
        for batch in budgeted([len(row) for row in rows], TOKEN_BUDGET[self.encoder.device.type]):
            asked = [sentences[hidden[i]] for i in batch]
            for row, text in self._batch([rows[i] for i in batch], asked):
                found[hidden[batch[row]]].append(text)
        return found

    def _batch(self, rows: Sequence[Sequence[int]], sentences: Sequence[Hidden]) -> Iterator[tuple[int, str]]:
        """Yield the number of the row and the word for each mask, row by row, from left to right."""
        with torch.inference_mode():
            ids, mask = self.encoder.tokens.padded(rows, self.encoder.device)
            row, place = (ids == self.head.mask).nonzero(as_tuple=True)
            states = self.encoder.model(input_ids=ids, attention_mask=mask).last_hidden_state[row, place]
            scores = self.head(states) + self.barred
            lines, own = row.tolist(), [iter(sentence.cores) for sentence in sentences]
            for line, number in enumerate(lines):
                scores[line, self.numbers.get(next(own[number]).lower(), [])] = -torch.inf
            best = scores.argmax(-1).tolist()
        yield from zip(lines, (self.texts[piece] for piece in best), strict=True)


def whole_words(tokenizer: Any) -> dict[int, str]:
    """Return the pieces that are words by themselves, letters and digits only, with their texts.

    Left out are the specials, what continues a word, and marks, which a model finds most probable in many a place.
    """
    texts = [text.strip() for text in tokenizer.batch_decode([[number] for number in range(len(tokenizer))])]
    # After a space: RoBERTa has one piece for a word that begins and another for the same letters within a word.
    alone = tokenizer([f" {text}" for text in texts], add_special_tokens=False)["input_ids"]
    return {
        number: text
        for number, (text, row) in enumerate(zip(texts, alone, strict=True))
        if text.isalnum() and row == [number]
    }


PLUGIN = MlmReplacement
