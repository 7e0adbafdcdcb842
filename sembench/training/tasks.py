"""What a training step sees and minimises: each objective's examples, tokenised once, and its loss on some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from sembench.core.errors import SembenchError
from sembench.encoders.devices import autocast
from sembench.encoders.transformer import TransformerEncoder
from sembench.registry.models import Recipe
from sembench.training.batches import encode_rows
from sembench.training.objectives import cosines, info_nce, relation_info_nce, relation_vectors

Facts = dict[str, float]
Examples = Sequence[str] | pd.DataFrame
ROLES = ("anchor", "positive", "third")


class Task(Protocol):
    """Training examples with their loss."""

    rows: int

    def loss(self, batch: Sequence[int], precision: str) -> tuple[Tensor, Facts]:
        """Return the loss of the examples with these numbers, and facts worth keeping in the curve."""


def build_task(recipe: Recipe, encoder: TransformerEncoder, examples: Examples) -> Task:
    """Return the task of a recipe on its examples: sentences, or a frame of DSBATS4CL or of definitions.

    Raises:
        SembenchError: there is nothing to train on.
    """
    if not len(examples):
        raise SembenchError("the corpus holds no sentence to train on")
    if isinstance(examples, pd.DataFrame):
        return (
            RelationRows(recipe, encoder, examples)
            if recipe.objective == "analogy"
            else Definitions(recipe, encoder, examples)
        )
    return SentenceViews(recipe, encoder, examples)


class SentenceViews:
    """Unsupervised SimCSE: each sentence passes twice in the same batch of 2N rows, under two dropout masks."""

    def __init__(self, recipe: Recipe, encoder: TransformerEncoder, sentences: Sequence[str]) -> None:
        self.recipe = recipe
        self.encoder = encoder
        self.tokens = encoder.tokens(sentences, recipe.max_length)
        self.rows = len(self.tokens)

    def loss(self, batch: Sequence[int], precision: str) -> tuple[Tensor, Facts]:
        """Return Equation 1 of SimCSE on N sentences."""
        tokens = [self.tokens[i] for i in batch]
        readout = "cls_mlp" if self.recipe.head == "mlp" else self.recipe.readout
        with autocast(precision, self.encoder.device):
            vectors = encode_rows(self.encoder, [*tokens, *tokens], readout, self.recipe.chunk_rows)
        # Outside autocast: a product in bf16 would round cosines to two digits before they are divided by 0.05.
        first, second = vectors[: len(tokens)].float(), vectors[len(tokens) :].float()
        return info_nce(first, second, self.recipe.temperature), {}


class RelationRows:
    """DSBATS4CL: rows of an anchor pair, a positive pair of the same relation, and an exchanged third pair."""

    def __init__(self, recipe: Recipe, encoder: TransformerEncoder, frame: pd.DataFrame) -> None:
        self.recipe = recipe
        self.encoder = encoder
        texts = {role: [frame[f"{role}_{side}_gloss"].tolist() for side in ("source", "target")] for role in ROLES}
        unique = list(dict.fromkeys(text for sides in texts.values() for side in sides for text in side))
        place = {text: number for number, text in enumerate(unique)}
        self.tokens = encoder.tokens(unique, recipe.max_length)
        # (rows, 3 roles, 2 sides): which sentence stands where.
        self.places = np.array([[[place[t] for t in side] for side in texts[role]] for role in ROLES]).transpose(
            2, 0, 1
        )
        labels = pd.factorize(pd.concat([frame[f"{role}_directed"] for role in ROLES], ignore_index=True))[0]
        self.relation = torch.from_numpy(labels.reshape(len(ROLES), -1))
        self.rows = len(frame)

    def loss(self, batch: Sequence[int], precision: str) -> tuple[Tensor, Facts]:
        """Return the analogy objective on N rows and the cosines that tell whether relations collapse into one."""
        places = self.places[list(batch)]
        unique, back = np.unique(places, return_inverse=True)
        with autocast(precision, self.encoder.device):
            vectors = encode_rows(
                self.encoder, [self.tokens[i] for i in unique], self.recipe.readout, self.recipe.chunk_rows
            )
        # A sentence that stands in several rows is encoded once: the objective has no use for a second dropout mask.
        sides = at_places(vectors.float(), torch.from_numpy(back.reshape(places.shape)).to(vectors.device))
        anchors, positives, thirds = (
            relation_vectors(sides[:, role, 0], sides[:, role, 1], self.recipe.relation_encoder) for role in range(3)
        )
        anchor, positive, third = (self.relation[role, list(batch)].to(vectors.device) for role in range(3))
        false = (anchor.unsqueeze(1) == third) & self.recipe.mask_false_negatives
        same = anchor.unsqueeze(1) == positive
        loss = relation_info_nce(
            anchors, positives, thirds, self.recipe.temperature, self.recipe.negatives, same, false
        )
        return loss, relation_facts(anchors.detach(), positives.detach(), same)


def at_places(vectors: Tensor, places: Tensor) -> Tensor:
    """Return (..., width): the row of ``vectors`` (rows, width) that stands in each of ``places`` (...).

    Not ``vectors[places]``: torch would sum the gradients of a repeated row in whatever order its threads come by, and
    two runs would differ.
    """
    return functional.embedding(places, vectors)


def relation_facts(anchors: Tensor, positives: Tensor, same: Tensor) -> Facts:
    """Return the mean cosine with the own positive and with positives of other relations; both near 1: collapse."""
    table = cosines(anchors, positives)
    others = table[~same]
    return {
        "own_cosine": float(table.diagonal().mean()),
        "cross_cosine": float(others.mean()) if len(others) else float("nan"),
    }


class Definitions:
    """DefSent (Tsukagoshi et al. 2021): predict the defined word from its definition through frozen word embeddings.

    DefSent uses the checkpoint's masked-language-model layer; a backbone without one (DistilBERT here) has its word
    embeddings, to which that layer is tied. Only words that are one word piece can be predicted.
    """

    def __init__(self, recipe: Recipe, encoder: TransformerEncoder, frame: pd.DataFrame) -> None:
        self.recipe = recipe
        self.encoder = encoder
        pieces = encoder.tokens(frame["word"].tolist())
        kept = [number for number, ids in enumerate(pieces) if len(ids) == 3]
        if not kept:
            raise SembenchError(
                "no defined word is a single word piece of this encoder, so DefSent has nothing to predict"
            )
        self.words = torch.tensor([pieces[number][1] for number in kept])
        self.tokens = encoder.tokens([frame["gloss"].iloc[number] for number in kept], recipe.max_length)
        self.rows = len(kept)
        embeddings: nn.Embedding = encoder.model.get_input_embeddings()
        self.output = embeddings.weight.detach().clone()

    def loss(self, batch: Sequence[int], precision: str) -> tuple[Tensor, Facts]:
        """Return the cross-entropy of the defined words of N definitions."""
        with autocast(precision, self.encoder.device):
            rows = [self.tokens[i] for i in batch]
            vectors = encode_rows(self.encoder, rows, self.recipe.readout, self.recipe.chunk_rows)
            scores = vectors @ self.output.T
        words = self.words[list(batch)].to(vectors.device)
        right = float((scores.detach().argmax(-1) == words).float().mean())
        return functional.cross_entropy(scores.float(), words), {"word_accuracy": right}
