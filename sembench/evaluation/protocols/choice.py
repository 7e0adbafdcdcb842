"""Analogy choice: which of four pairs has the relation vector nearest to the asked one's? No training at all."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from sembench.core.lazy import np
from sembench.core.schema import Strict
from sembench.evaluation.protocol import Prediction, Protocol, Score, Source, VectorsOf, sample_hash

RULES = "registry/relations.yaml"


class ChoiceConfig(Strict):
    """Parameters of a task."""

    seed: int = Field(0, ge=0, description="of the questions and of the bootstrap")
    questions: int = Field(25, gt=0, description="questions of a relation at most")
    draws: int = Field(2000, gt=0, description="of the bootstrap")


class Choice(Protocol[ChoiceConfig]):
    """Questions drawn from definition pairs: four pairs of which one stands in the asked relation."""

    Config = ChoiceConfig
    version = 2
    metrics = ("accuracy", "low", "high", "chance")

    def __init__(self, config: ChoiceConfig, data: Source) -> None:
        from sembench.evaluation.srsd.definitions import read_definitions
        from sembench.evaluation.srsd.questions import make_questions

        super().__init__(config, data)
        frame, rules = read_definitions(data.made(), data.root / RULES)
        self.questions = make_questions(frame, rules, config.questions, config.seed)

    @classmethod
    def reads(cls, config: ChoiceConfig) -> tuple[str, ...]:  # noqa: ARG003
        """Return the file with families and symmetry of the relations."""
        return (RULES,)

    @classmethod
    def splits(cls, config: ChoiceConfig) -> tuple[str, ...]:  # noqa: ARG003
        """Return the one split: nothing is trained."""
        return ("test",)

    @property
    def sentences(self) -> Iterable[str]:
        """All sentences of the questions."""
        from sembench.evaluation.srsd.questions import question_sentences

        return question_sentences(self.questions)

    def score(self, vectors: VectorsOf) -> tuple[list[Score], list[Prediction]]:
        """Answer all questions with either relation vector.

        Returns:
            In the split ``test``, with the relation vector (diff or concat) as subset, the metrics ``accuracy``,
            ``low`` and ``high`` (its 95% interval, by bootstrap over groups of asked pairs) and ``chance``; and a
            prediction per vector and question.
        """
        from sembench.evaluation.intervals import with_interval
        from sembench.evaluation.srsd.definitions import text_rows
        from sembench.evaluation.srsd.questions import CHOICES, VECTORS, analogy_choice

        questions = self.questions
        hashed = sample_hash(text_rows(questions, list(questions.columns)))
        answers, groups = questions["answer"].to_numpy(np.int64), list(questions["group"])
        scores: list[Score] = []
        predictions: list[Prediction] = []
        for vector in VECTORS:
            chosen = analogy_choice(questions, vectors, vector)
            values = with_interval(chosen == answers, groups, groups, self.config.draws, self.config.seed)
            values["chance"] = 1 / CHOICES
            scores += [Score("test", name, value, len(questions), hashed, vector) for name, value in values.items()]
            predictions += [
                {"split": "test", "subset": vector, "index": index, "chosen": one, "gold": other}
                for index, (one, other) in enumerate(zip(chosen.tolist(), answers.tolist(), strict=True))
            ]
        return scores, predictions


PLUGIN = Choice
