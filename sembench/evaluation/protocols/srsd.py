"""SRSD: a classifier over frozen vectors decides whether two pairs are in the same relation (analogy paper, 5.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from sembench.core.lazy import np
from sembench.core.schema import Strict
from sembench.evaluation.protocol import Prediction, Protocol, Score, Source, VectorsOf, sample_hash

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sembench.evaluation.srsd.items import Split


RULES = "registry/relations.yaml"


class SrsdConfig(Strict):
    """Parameters of a task."""

    seed: int = Field(0, ge=0, description="of the items and of the bootstrap")
    per_relation: int = Field(100, gt=0, description="items of the same relation at most; as many again are negative")
    orientation: Literal["both", "forward"] = Field(
        "both",
        description="both: every second item has both pairs the other way round, so that no pair alone tells that "
        "another one is exchanged; forward: as in the data but for the exchanged pair",
    )
    strengths: tuple[float, ...] = Field((1e-5, 1e-4, 1e-3, 1e-2, 1e-1), description="C to choose from, ascending")
    draws: int = Field(2000, gt=0, description="of the bootstrap")


class Srsd(Protocol[SrsdConfig]):
    """Items drawn from definition pairs, classified under a split by word pair and a random one."""

    Config = SrsdConfig
    version = 2
    metrics = ("accuracy", "low", "high", "majority", "seen_pairs", "seen_sentences")

    def __init__(self, config: SrsdConfig, data: Source) -> None:
        from sembench.evaluation.srsd.definitions import read_definitions
        from sembench.evaluation.srsd.items import make_items

        super().__init__(config, data)
        frame, rules = read_definitions(data.made(), data.root / RULES)
        self.items = make_items(frame, rules, config.per_relation, config.orientation, config.seed)

    @classmethod
    def reads(cls, config: SrsdConfig) -> tuple[str, ...]:  # noqa: ARG003
        """Return the file with families and symmetry of the relations."""
        return (RULES,)

    @classmethod
    def splits(cls, config: SrsdConfig) -> tuple[str, ...]:  # noqa: ARG003
        """Return both ways to deal items to folds."""
        return ("leak_free", "paper_like")

    @property
    def sentences(self) -> Iterable[str]:
        """All sentences of the items."""
        from sembench.evaluation.srsd.items import SENTENCES

        return (sentence for column in SENTENCES for sentence in self.items[column])

    def score(self, vectors: VectorsOf) -> tuple[list[Score], list[Prediction]]:
        """Cross-predict all items under both splits.

        Returns:
            For each split and for the subsets all, other_relation and exchanged, and for ``leak_free`` held_out, the
            metrics ``accuracy``, ``low`` and ``high`` (its 95% interval) and ``majority``, and for all ``seen_pairs``
            and ``seen_sentences``; and a prediction per split and item.

        Raises:
            SembenchError: a fold has no item.
        """
        from sembench.evaluation.features import relation_features
        from sembench.evaluation.srsd.classifier import cross_predict
        from sembench.evaluation.srsd.items import SENTENCES, SPLITS

        items = self.items
        features = relation_features(*(vectors(items[column].tolist()) for column in SENTENCES))
        labels = items["label"].to_numpy(np.int64)
        scores: list[Score] = []
        predictions: list[Prediction] = []
        for split in SPLITS:
            odds = cross_predict(features, labels, items[split].to_numpy(np.int64), self.config.strengths)
            scores += self._split_scores(split, odds)
            predictions += [
                {"split": split, "subset": subset, "index": index, "log_odds": float(value), "gold": int(label)}
                for index, (subset, value, label) in enumerate(zip(items["subset"], odds, labels, strict=True))
            ]
        return scores, predictions

    def _split_scores(self, split: Split, odds: NDArray[np.float64]) -> list[Score]:
        from sembench.evaluation.intervals import with_interval
        from sembench.evaluation.srsd.definitions import text_rows
        from sembench.evaluation.srsd.items import SENTENCES, seen_in_training

        scores = []
        for subset, used in self._subsets(split).items():
            part = self.items[used]
            labels = part["label"].to_numpy(np.int64)
            right, groups = (odds[used] > 0) == labels, (list(part["first_group"]), list(part["second_group"]))
            values = with_interval(right, *groups, self.config.draws, self.config.seed)
            values["majority"] = float(np.bincount(labels).max() / len(labels))
            if subset == "all":
                values |= seen_in_training(part, split)
            hashed = sample_hash(text_rows(part, ["label", *SENTENCES, split]))
            scores += [Score(split, name, value, len(part), hashed, subset) for name, value in values.items()]
        return scores

    def _subsets(self, split: Split) -> dict[str, NDArray[np.bool_]]:
        """Return which items are in each subset of a split, (items,); those without any are left out."""
        from sembench.analogy.folds import HELD_OUT

        items = self.items
        found = {
            "all": np.ones(len(items), dtype=bool),
            **{name: (items["subset"] == name).to_numpy() for name in ("other_relation", "exchanged")},
        }
        if split == "leak_free":
            # The word pairs of this fold are not in dsbats4cl_held_out: an encoder trained on that has not met them.
            found["held_out"] = (items["leak_free"] == HELD_OUT).to_numpy()
        return {name: used for name, used in found.items() if used.any()}


PLUGIN = Srsd
