"""Transfer tasks: a linear classifier on frozen vectors, by SentEval's protocol (SimCSE, section 6 and Appendix E)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from sembench.core.lazy import np
from sembench.core.schema import Strict, later
from sembench.evaluation.protocol import Prediction, Protocol, Score, Source, Vectors, VectorsOf, sample_hash

if TYPE_CHECKING:
    from sembench.data.readers.labelled import Labelled
    from sembench.evaluation.folds import Ints
    from sembench.evaluation.probes import Settings
    from sembench.evaluation.schemes import Choice, Tested
    from sembench.results.resampling import Statistic


class TransferConfig(Strict):
    """Parameters of a task; the defaults are those of SentEval's full mode as SimCSE ran it."""

    features: Literal["single", "pair"] = Field(
        "single", description="single: the vector u; pair: |u - v| and u * v side by side"
    )
    scheme: Literal["train_test", "nested", "fixed"] = Field(
        "train_test",
        description="train_test: an official test split, L2 by cross-validation on the other; fixed: an official dev "
        "split besides, which chooses L2; nested: no split, every fold is tested in turn",
    )
    train: str = Field("train", description="split that is learned from; nested: the only one")
    dev: str = later("dev", was="dev", description="fixed: split that L2 is chosen on")
    test: str = Field("test", description="split that is tested; nested: only its name in the scores")
    folds: int = Field(10, ge=2, description="of the cross-validation that chooses L2; nested: of the outer one too")
    l2: tuple[float, ...] = Field((1e-5, 1e-4, 1e-3, 1e-2), min_length=1, description="strengths, ascending")
    optimiser: Literal["adam", "rmsprop"] = later("adam", was="adam")
    learning_rate: float = Field(1e-3, gt=0, description="of the optimiser; PyTorch's default for RMSprop is 0.01")
    batch_size: int = Field(64, gt=0)
    tenacity: int = Field(5, ge=0, description="a fit ends with check number tenacity + 1 that is not better")
    epoch_size: int = Field(4, gt=0, description="epochs between two checks")
    max_epoch: int = Field(200, ge=0, description="no new round of epochs begins beyond this one")
    held_out: float = Field(0.05, gt=0, lt=1, description="share of the rows that the last fit is checked on")
    seed: int = Field(1111, ge=0, description="of folds, first weights and order of the rows, anew for every fit")


class Transfer(Protocol[TransferConfig]):
    """How well a linear classifier tells the classes of a task apart."""

    Config = TransferConfig
    version = 2
    metrics = ("accuracy", "f1", "majority", "l2")
    aggregations = ("all", "subset")
    readers = ("mr", "cr", "subj", "mpqa", "sst", "trec", "mrpc")

    def __init__(self, config: TransferConfig, data: Source) -> None:
        from sembench.data.readers.labelled import read_labelled

        super().__init__(config, data)
        names = {
            "nested": [config.train],
            "train_test": [config.train, config.test],
            "fixed": [config.train, config.dev, config.test],
        }[config.scheme]
        self.parts = [read_labelled(data.fetched(), data.folder, name) for name in names]

    @classmethod
    def splits(cls, config: TransferConfig) -> tuple[str, ...]:
        """Return the tested split, and ``dev`` for what cross-validation, or the dev split, gives."""
        return (config.test, "dev")

    @classmethod
    def statistics(cls) -> Mapping[str, Statistic]:
        """Return what is computed from the predicted classes of the tested items."""
        from sembench.results.resampling import Statistic, accuracy, accuracy_tests, f1

        return {
            "accuracy": Statistic("predicted", accuracy, accuracy_tests),
            "f1": Statistic("predicted", f1),
        }

    @property
    def sentences(self) -> Iterable[str]:
        """All sentences of all splits, duplicates kept."""
        return (sentence for part in self.parts for sentence in part.sentences)

    def score(self, vectors: VectorsOf) -> tuple[list[Score], list[Prediction]]:
        """Fit and judge the classifiers, on a GPU where there is one.

        Returns:
            On the test split ``accuracy``, ``majority`` (rate of the most frequent class) and, of two classes, the
            ``f1`` of class 1; on ``dev`` the accuracy of cross-validation, or on the dev split, and the ``l2`` that it
            chose. Nested: the means over the outer folds, and each fold's own as subset fold_0, ...; predictions for
            each tested item.

        Raises:
            SembenchError: there are too few items, all have one class, or vectors are damaged.
        """
        tested, gold = self.tested(vectors), self.parts[-1].labels
        return self._scores(tested, gold), self._predictions(tested, gold)

    def tested(self, vectors: VectorsOf) -> list[Tested]:
        """Return what the final classifiers say of the tested items, whose ``rows`` are in the order of the files."""
        from sembench.encoders.devices import pick_device
        from sembench.evaluation.schemes import fixed, nested, train_test

        device = pick_device().type
        choice, settings = self.choice, self.settings
        order = self.parts[0].senteval_order()
        learned = self.parts[0].take(order)
        features = self.features(learned, vectors)
        if self.config.scheme == "nested":
            found = nested(features, learned.labels, choice, settings, device)
            return [replace(part, rows=order[part.rows]) for part in found]
        test = self.features(self.parts[-1], vectors)
        if self.config.scheme == "train_test":
            return train_test(features, learned.labels, test, choice, settings, device)
        dev = self.features(self.parts[1], vectors)
        return fixed(features, learned.labels, dev, self.parts[1].labels, test, choice, settings, device)

    @property
    def choice(self) -> Choice:
        """How L2 is chosen."""
        from sembench.evaluation.schemes import Choice

        config = self.config
        return Choice(config.folds, config.l2, config.held_out, config.seed)

    @property
    def settings(self) -> Settings:
        """How one classifier is fitted."""
        from sembench.evaluation.probes import Settings

        config = self.config
        return Settings(
            optimiser=config.optimiser,
            learning_rate=config.learning_rate,
            batch_size=config.batch_size,
            tenacity=config.tenacity,
            epoch_size=config.epoch_size,
            max_epoch=config.max_epoch,
            seed=config.seed,
        )

    def features(self, part: Labelled, vectors: VectorsOf) -> Vectors:
        """Return the features of items, (items, width) or of pairs (items, 2 * width)."""
        if self.config.features == "single":
            return vectors(part.columns[0])
        from sembench.evaluation.features import pair_features

        return pair_features(*(vectors(column) for column in part.columns))

    def _scores(self, tested: list[Tested], gold: Ints) -> list[Score]:
        from sembench.evaluation.schemes import accuracy_of, f1_score

        config = self.config
        hashed = sample_hash(chain.from_iterable(part.rows() for part in self.parts))
        dev = len(self.parts[1] if config.scheme == "fixed" else self.parts[0])
        scores = [Score(config.test, "accuracy", accuracy_of(tested, gold), len(gold), hashed)]
        if self.parts[0].labels.max() == 1:
            scores.append(Score(config.test, "f1", f1_score(_guesses(tested, gold), gold), len(gold), hashed))
        scores += [
            Score(config.test, "majority", float(np.bincount(gold).max() / len(gold)), len(gold), hashed),
            Score("dev", "accuracy", float(np.mean([part.dev_accuracy for part in tested])), dev, hashed),
        ]
        if config.scheme != "nested":
            return [*scores, Score("dev", "l2", tested[0].l2, dev, hashed)]
        for number, part in enumerate(tested):
            name, size = f"fold_{number}", len(part.rows)
            scores += [
                Score(config.test, "accuracy", accuracy_of([part], gold), size, hashed, name, "subset"),
                Score("dev", "accuracy", part.dev_accuracy, dev - size, hashed, name, "subset"),
                Score("dev", "l2", part.l2, dev - size, hashed, name, "subset"),
            ]
        return scores

    def _predictions(self, tested: list[Tested], gold: Ints) -> list[Prediction]:
        """Return a prediction per tested item, in the order of the files."""
        both = enumerate(zip(_guesses(tested, gold).tolist(), gold.tolist(), strict=True))
        return [
            {"split": self.config.test, "index": row, "predicted": guess, "gold": own} for row, (guess, own) in both
        ]


def _guesses(tested: list[Tested], gold: Ints) -> Ints:
    guesses = np.empty_like(gold)
    for part in tested:
        guesses[part.rows] = part.predicted
    return guesses


PLUGIN = Transfer
