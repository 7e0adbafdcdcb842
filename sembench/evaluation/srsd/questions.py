"""Questions of analogy choice: which of four definition pairs stands in the relation of the asked one?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sembench.analogy.rules import RelationRule
from sembench.core.errors import SembenchError
from sembench.evaluation.protocol import Vectors, VectorsOf
from sembench.evaluation.srsd.definitions import DefinitionPairs
from sembench.evaluation.sts import cosine

Ints = NDArray[np.int64]
RelationVector = Literal["diff", "concat"]
VECTORS: tuple[RelationVector, ...] = ("diff", "concat")
CHOICES = 4


def make_questions(
    frame: pd.DataFrame, rules: Mapping[str, RelationRule], size: int = 25, seed: int = 0
) -> pd.DataFrame:
    """Draw questions: a definition pair, and four others of which exactly one stands in the same relation.

    The three wrong ones are of three other families of relations. No two pairs of a question share a word or a sentence
    with the asked one.

    Args:
        frame: relation, source, target, source_gloss, target_gloss.
        rules: families and symmetry of the relations.
        size: questions of a relation at most.
        seed: of the draws.

    Returns:
        A frame with ``relation``, ``group`` (of the asked pair), ``answer`` (0 to 3), and the sentences ``asked_source
        asked_target source_0 target_0 ... source_3 target_3``.

    Raises:
        SembenchError: there are too few relations for a question.
    """
    table = DefinitionPairs(frame, rules)
    generator = np.random.default_rng(seed)
    made: list[dict[str, Any]] = []
    for relation in dict.fromkeys(table.relation):
        rows = [row for row, key in enumerate(table.relation) if key == relation]
        questions = (_question(table, rows, row, generator) for row in generator.permutation(rows).tolist())
        made += islice(filter(None, questions), size)
    if not made:
        raise SembenchError(
            f"no question can be made: SRSD's test set has too few relations; choose {CHOICES} of different families"
        )
    return pd.DataFrame(made)


def _question(
    table: DefinitionPairs, rows: Sequence[int], asked: int, generator: np.random.Generator
) -> dict[str, Any] | None:
    right = [row for row in rows if table.apart(asked, row)]
    wrong: dict[str, int] = {}
    for _ in range(100):
        row = table.draw_other(asked, None, generator)
        if row is not None:
            rule = table.rules[table.relation[row]]
            wrong.setdefault(rule.family or rule.name, row)
        if len(wrong) == CHOICES - 1:
            break
    if not right or len(wrong) < CHOICES - 1:
        return None
    answer = int(generator.integers(CHOICES))
    choices = list(wrong.values())
    choices.insert(answer, right[generator.integers(len(right))])
    question = {"relation": table.relation[asked], "group": table.group[table.words[asked]], "answer": answer}
    question |= dict(zip(("asked_source", "asked_target"), table.glosses[asked], strict=True))
    for place, row in enumerate(choices):
        question |= dict(zip((f"source_{place}", f"target_{place}"), table.glosses[row], strict=True))
    return question


def question_sentences(questions: pd.DataFrame) -> list[str]:
    """Return the sentences of questions, duplicates kept."""
    columns = [name for name in questions.columns if name.startswith(("asked_", "source_", "target_"))]
    return [str(text) for column in columns for text in questions[column]]


def analogy_choice(questions: pd.DataFrame, vectors: VectorsOf, vector: RelationVector) -> Ints:
    """Return the chosen pair of each question, (questions,): the one whose relation vector has the largest cosine.

    Args:
        questions: of ``make_questions``.
        vectors: gives the vectors of sentences, (sentences, width).
        vector: ``diff`` for source minus target, ``concat`` for both side by side.
    """

    def relation(source: str, target: str) -> Vectors:
        one, other = vectors(questions[source].tolist()), vectors(questions[target].tolist())
        return one - other if vector == "diff" else np.concatenate([one, other], axis=1)

    asked = relation("asked_source", "asked_target")
    cosines = [cosine(asked, relation(f"source_{place}", f"target_{place}")) for place in range(CHOICES)]
    found: Ints = np.argmax(cosines, axis=0)
    return found
