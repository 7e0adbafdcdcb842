"""Sentence relationship similarity distinguishing: do two pairs of sentences stand in the same relation?

The paper's task (section 5.3, figure 2): four sentences that make two pairs, and a classifier over their frozen
vectors. How the test items were drawn does not survive, so that is decided here: as many items with the same relation
as without, and of the latter half with a pair of another relation and half with an exchanged pair. Beside the paper's
random split there is one by word pair, since a definition seen in training tells its relation by itself.

``analogy_choice`` needs no training: which of four pairs stands in the relation of the asked one?
"""

from __future__ import annotations

import functools
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from sembench.analogy.folds import FOLDS, HELD_OUT, pair_groups
from sembench.analogy.rules import RelationRule
from sembench.core.errors import SembenchError
from sembench.core.schema import Strict
from sembench.evaluation.sts import cosine
from sembench.evaluation.transfer import stratified_folds

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.bool_]
Record = dict[str, Any]
Encode = Callable[[Sequence[str]], Vectors]
Split = Literal["leak_free", "paper_like"]
SPLITS: tuple[Split, ...] = ("leak_free", "paper_like")
SENTENCES = ["sentence_1", "sentence_2", "sentence_3", "sentence_4"]
ITEM_COLUMNS = [
    "relation",
    "other_relation",
    "label",
    "subset",
    "exchanged",
    *SENTENCES,
    "first_pair",
    "second_pair",
    "first_group",
    "second_group",
    *SPLITS,
]
CHOICES = 4


class SrsdOptions(Strict):
    """Choices in drawing and judging items."""

    seed: int = Field(0, ge=0)
    per_relation: int = Field(100, gt=0, description="items of the same relation at most; as many again are negative")
    orientation: Literal["both", "forward"] = Field(
        "both",
        description="both: every second item has both pairs the other way round, so that no pair alone tells that "
        "another one is exchanged; forward: as in the data but for the exchanged pair",
    )
    strengths: tuple[float, ...] = Field((1e-5, 1e-4, 1e-3, 1e-2, 1e-1), description="C to choose from, ascending")
    questions: int = Field(25, gt=0, description="analogy choice: questions of a relation at most")
    draws: int = Field(2000, gt=0, description="of the bootstrap")


class _Table:
    """Definition pairs by relation and fold, and what two of them may not share."""

    def __init__(
        self,
        frame: pd.DataFrame,
        rules: Mapping[str, RelationRule],
        options: SrsdOptions,
    ) -> None:
        self.rules, self.options = rules, options
        rows = list(frame[["relation", "source", "target"]].itertuples(index=False, name=None))
        self.relation = [row[0] for row in rows]
        self.words = [(row[1], row[2]) for row in rows]
        self.glosses = list(zip(frame["source_gloss"], frame["target_gloss"], strict=True))
        self.group = pair_groups(self.words)
        self.fold = frame["fold"].tolist()
        self.cells: dict[tuple[str, int], list[int]] = defaultdict(list)
        for row, (relation, place) in enumerate(zip(self.relation, self.fold, strict=True)):
            self.cells[relation, place].append(row)

    def apart(self, one: int, other: int) -> bool:
        """Whether two rows share neither word nor sentence: a common one would give the relation away."""
        return not ({*self.words[one]} & {*self.words[other]} or {*self.glosses[one]} & {*self.glosses[other]})

    def others(self, relation: str) -> list[str]:
        """Return the relations of which a pair is surely no instance of this one, not even exchanged."""
        label = self.rules[relation].directed()
        return [
            key
            for key in dict.fromkeys(self.relation)
            if label not in (self.rules[key].directed(), self.rules[key].directed(True))
        ]

    @functools.cache  # noqa: B019
    def pools(self, relation: str, fold: int | None) -> list[list[int]]:
        """Return the rows of each other relation, of one fold or (None) of all."""
        places = range(FOLDS) if fold is None else [fold]
        found = ([row for place in places for row in self.cells.get((key, place), [])] for key in self.others(relation))
        return [rows for rows in found if rows]

    def draw_other(self, row: int, fold: int | None, generator: np.random.Generator) -> int | None:
        """Return a row of another relation, each relation as likely as the next; None where the draw fails."""
        pools = self.pools(self.relation[row], fold)
        if not pools:
            return None
        rows = pools[generator.integers(len(pools))]
        found = rows[generator.integers(len(rows))]
        return found if self.apart(row, found) else None


# -------------------------------------------------------------------------------------------------------- items


def make_items(
    frame: pd.DataFrame,
    rules: Mapping[str, RelationRule],
    options: SrsdOptions | None = None,
) -> pd.DataFrame:
    """Draw items of SRSD from definition pairs.

    Both pairs of an item are of one fold of word pairs and share no word and no sentence. Relations of one family (L02
    and L03, L09 and L10) never make an item of two relations. A symmetric relation exchanged is the same relation, so
    it gives no exchanged negatives, and the other relations give the more of them. The same items serve both splits.

    Args:
        frame: relation, source, target, source_gloss, target_gloss, fold.
        rules: families and symmetry of the relations.
        options: size and seed.

    Returns:
        A frame with the columns ``ITEM_COLUMNS``: ``label`` 1 for the same relation; ``subset`` other_relation or
        exchanged, what the item tells from: half of each subset has label 1; ``exchanged`` marks the negatives of the
        latter; ``leak_free`` and ``paper_like`` the fold in which an item is tested.

    Raises:
        SembenchError: no relation has two pairs in a fold.
    """
    options = options or SrsdOptions()
    table = _Table(frame, rules, options)
    generator = np.random.default_rng(options.seed)
    share = -(-options.per_relation // FOLDS)
    positives = {cell: _same(table, rows, share, generator) for cell, rows in sorted(table.cells.items())}
    if not any(positives.values()):
        raise SembenchError("no relation has two word pairs without a common word in a fold; give more pairs")
    exchanged = _exchanged_sizes(positives, rules)
    rows: list[dict[str, Any]] = []
    for cell, found in positives.items():
        rows += _cell_items(table, cell, found, exchanged[cell], generator)
    items = pd.DataFrame(rows, columns=ITEM_COLUMNS[:-1])
    items["paper_like"] = stratified_folds(items["label"].to_numpy(np.int64), FOLDS, options.seed)
    return items


def _same(table: _Table, rows: Sequence[int], size: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    """Draw up to ``size`` different pairs of rows that have nothing in common, each in either order."""
    possible = [(a, b) for a, b in combinations(rows, 2) if table.apart(a, b)]
    chosen = [possible[place] for place in generator.permutation(len(possible))[:size]]
    return [(a, b) if generator.random() < 0.5 else (b, a) for a, b in chosen]


def _exchanged_sizes(
    positives: Mapping[tuple[str, int], Sequence[tuple[int, int]]], rules: Mapping[str, RelationRule]
) -> dict[tuple[str, int], int]:
    """Return how many negatives of each cell are exchanged pairs, so that half of all are as far as possible."""
    sizes = {cell: 0 if rules[cell[0]].symmetric else len(found) for cell, found in positives.items()}
    total, able = sum(map(len, positives.values())), sum(sizes.values())
    wanted = min(total // 2, able)
    ends = [done * wanted // able if able else 0 for done in np.cumsum([0, *sizes.values()]).tolist()]
    return {cell: end - start for cell, start, end in zip(sizes, ends[:-1], ends[1:], strict=True)}


def _cell_items(
    table: _Table,
    cell: tuple[str, int],
    positives: Sequence[tuple[int, int]],
    exchanged: int,
    generator: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Yield the items of a relation and fold, a negative behind every positive."""
    negatives = _same(table, table.cells[cell], exchanged, generator)
    seen: set[tuple[int, int]] = set()
    for number, positive in enumerate(positives):
        is_exchanged = number < exchanged
        negative = negatives[number] if is_exchanged else _negative(table, cell, seen, generator)
        if negative is not None:
            subset = "exchanged" if is_exchanged else "other_relation"
            yield _item(table, positive, 1, subset, generator)
            yield _item(table, negative, 0, subset, generator)


def _negative(
    table: _Table, cell: tuple[str, int], seen: set[tuple[int, int]], generator: np.random.Generator
) -> tuple[int, int] | None:
    rows = table.cells[cell]
    for _ in range(100):
        first = rows[generator.integers(len(rows))]
        second = table.draw_other(first, cell[1], generator)
        if second is not None and (first, second) not in seen:
            seen.add((first, second))
            return first, second
    return None


def _item(
    table: _Table, rows: tuple[int, int], label: int, subset: str, generator: np.random.Generator
) -> dict[str, Any]:
    first, second = rows
    exchanged = subset == "exchanged" and not label
    turned = table.options.orientation == "both" and generator.random() < 0.5
    ones, others = table.glosses[first], table.glosses[second]
    ones = ones[::-1] if turned else ones
    others = others[::-1] if turned != exchanged else others
    return {
        "relation": table.relation[first],
        "other_relation": table.relation[second],
        "label": label,
        "subset": subset,
        "exchanged": exchanged,
        **dict(zip(SENTENCES, (*ones, *others), strict=True)),
        "first_pair": "|".join(table.words[first]),
        "second_pair": "|".join(table.words[second]),
        "first_group": table.group[table.words[first]],
        "second_group": table.group[table.words[second]],
        "leak_free": table.fold[first],
    }


def seen_in_training(items: pd.DataFrame, split: Split) -> dict[str, float]:
    """Return which share of the items has a word pair, and which has a sentence, that its training items have too.

    Even without common word pairs sentences recur: many things are green, and green has one definition.
    """
    pairs = items[["first_pair", "second_pair"]].to_numpy()
    texts = items[SENTENCES].to_numpy()
    fold = items[split].to_numpy()
    return {"seen_pairs": _seen(pairs, fold), "seen_sentences": _seen(texts, fold)}


def _seen(cells: NDArray[Any], fold: Ints) -> float:
    hits = 0
    for place in np.unique(fold):
        known = set(cells[fold != place].ravel())
        hits += sum(any(cell in known for cell in row) for row in cells[fold == place])
    return hits / len(cells)


# --------------------------------------------------------------------------------------------------- classifier


def relation_features(e1: Vectors, e2: Vectors, e3: Vectors, e4: Vectors) -> Floats:
    """Return ``e1 - e2``, ``e3 - e4`` and ``|e1 - e2 - e3 + e4|`` side by side, (items, 3 * width) (figure 2)."""
    one, other = (e1 - e2).astype(np.float64), (e3 - e4).astype(np.float64)
    return np.concatenate([one, other, np.abs(one - other)], axis=1)


def fit_logistic(features: Floats, labels: Ints, strength: float, start: Floats | None = None) -> Floats:
    """Return weights and, last, the bias of a logistic regression, (width + 1,).

    They minimise ``|w|^2 / 2 + C * sum(log(1 + exp(-s * (w x + b))))`` with s = 1 for label 1 and -1 for label 0, as
    scikit-learn's ``LogisticRegression(C=strength)`` does; the bias is free.

    Args:
        features: (rows, width).
        labels: (rows,), 0 or 1.
        strength: C; small is strong regularisation.
        start: weights to begin from.
    """
    signs = 2.0 * labels - 1

    def loss(point: Floats) -> tuple[float, Floats]:
        # All of it divided by C: else a small C makes the whole loss so small that the search stops where it starts.
        margins = signs * (features @ point[:-1] + point[-1])
        # 1 / (1 + exp(m)) by tanh, which does not overflow.
        pulls = -signs * 0.5 * (1 - np.tanh(margins / 2))
        slope = np.append(features.T @ pulls + point[:-1] / strength, pulls.sum())
        return float(point[:-1] @ point[:-1] / (2 * strength) + np.logaddexp(0, -margins).sum()), slope

    begin = np.zeros(features.shape[1] + 1) if start is None else start
    found: Floats = minimize(
        loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "gtol": 1e-6, "ftol": 1e-12}
    ).x
    return found


def cross_predict(features: Floats, labels: Ints, fold: Ints, strengths: Sequence[float]) -> Floats:
    """Return for each item the log-odds of label 1 from a classifier that did not see the item's fold.

    C is the one with the best accuracy on the next fold when trained on all further ones; the classifier is then
    trained on all folds but the tested one. Features are scaled by the mean and deviation of what is trained on, so
    that one grid of C serves every encoder.

    Args:
        features: (items, width).
        labels: (items,), 0 or 1.
        fold: (items,), 0 to folds - 1; the fold in which an item is tested.
        strengths: C to choose from; the first of equally good ones is taken.

    Raises:
        SembenchError: a fold has no item, or too few folds are left to train on.
    """
    count = int(fold.max()) + 1
    found = np.zeros(len(labels))
    # Products of a matrix with one vector wait for memory; BLAS with more threads only waits for them as well.
    with threadpool_limits(limits=1, user_api="blas"):
        for tested in range(count):
            inner, dev, test = _roles(labels, fold, tested, (tested + 1) % count)
            strength = _best_strength(features, labels, inner, dev, strengths)
            mean, scale = _scaling(features[~test])
            point = fit_logistic((features[~test] - mean) / scale, labels[~test], strength)
            found[test] = (features[test] - mean) / scale @ point[:-1] + point[-1]
    return found


def _roles(labels: Ints, fold: Ints, tested: int, chooses: int) -> tuple[Rows, Rows, Rows]:
    """Return which items train, which choose C, and which are tested."""
    dev, test = fold == chooses, fold == tested
    inner = ~dev & ~test
    if not (test.any() and dev.any() and len(np.unique(labels[inner])) == 2):
        raise SembenchError(
            f"SRSD: fold {tested} or {chooses} of the word pairs has no item, or the others one answer; give more pairs"
        )
    return inner, dev, test


def _best_strength(features: Floats, labels: Ints, train: Rows, dev: Rows, strengths: Sequence[float]) -> float:
    mean, scale = _scaling(features[train])
    learned, judged = ((features[rows] - mean) / scale for rows in (train, dev))
    point, accuracies = None, []
    for strength in strengths:
        # From the last point on: neighbours on the grid are near.
        point = fit_logistic(learned, labels[train], strength, point)
        accuracies.append(((judged @ point[:-1] + point[-1] > 0) == labels[dev]).mean())
    return strengths[int(np.argmax(accuracies))]


def _scaling(features: Floats) -> tuple[Floats, Floats]:
    deviation = features.std(axis=0)
    return features.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


# ----------------------------------------------------------------------------------------------------- interval


def bootstrap_interval(
    right: NDArray[Any], first: Sequence[str], second: Sequence[str], draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Return a 95% interval of an accuracy, by resampling groups of word pairs and not items.

    An item rests on two word pairs, and each of these occurs in many items, so items do not vary independently and
    Wilson's interval would be too narrow. Groups are drawn with replacement, and an item counts as often as its two
    groups together, by the product of how often each was drawn (the pigeonhole bootstrap of Owen 2007, which errs on
    the wide side). Where all items are right the interval is a point.

    Args:
        right: (items,), whether an answer is right.
        first: group of each item's first pair.
        second: group of its second pair; the same as ``first`` where an item rests on one group.
        draws: resamples.
        seed: of the draws.
    """
    codes = pd.factorize(np.array([*first, *second], dtype=object))[0]
    ones, others = codes[: len(first)], codes[len(first) :]
    size = int(codes.max()) + 1
    generator = np.random.default_rng(seed)
    hits, values = np.asarray(right, dtype=np.float64), []
    for _ in range(draws):
        times = np.bincount(generator.integers(size, size=size), minlength=size)
        weights = np.where(ones == others, times[ones], times[ones] * times[others])
        if total := weights.sum():
            values.append(hits @ weights / total)
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


# ------------------------------------------------------------------------------------------------------ records


def text_hash(table: pd.DataFrame, columns: Sequence[str]) -> str:
    """Return 12 hex digits over some columns of a table, as ``sample_hash`` does for sentence pairs."""
    lines = ("\t".join(map(str, row)) + "\n" for row in table[list(columns)].itertuples(index=False, name=None))
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


def srsd_records(
    items: pd.DataFrame, encode: Encode, options: SrsdOptions | None = None
) -> tuple[list[Record], list[Record]]:
    """Score frozen vectors on items of ``make_items``, under both splits.

    Args:
        items: see there.
        encode: gives the vectors of sentences, (sentences, width).
        options: C, bootstrap and seed.

    Returns:
        Score records (suite, task, split, subset, aggregation, metric, value, n, sample_hash): for each split and for
        the subsets all, other_relation and exchanged, and for ``leak_free`` held_out, the metrics ``accuracy``, ``low``
        and ``high`` (its 95% interval), ``majority``, and ``seen_pairs`` and ``seen_sentences`` for all; and a
        prediction per split and item.
    """
    options = options or SrsdOptions()
    features = relation_features(*(encode(items[column].tolist()) for column in SENTENCES))
    labels = items["label"].to_numpy(np.int64)
    records: list[Record] = []
    predictions: list[Record] = []
    for split in SPLITS:
        odds = cross_predict(features, labels, items[split].to_numpy(np.int64), options.strengths)
        records += _split_records(items, split, odds, options)
        labelled = {"suite": "srsd", "task": "srsd", "split": split}
        predictions += [
            {**labelled, "subset": subset, "index": index, "log_odds": float(value), "gold": int(label)}
            for index, (subset, value, label) in enumerate(zip(items["subset"], odds, labels, strict=True))
        ]
    return records, predictions


def _split_records(items: pd.DataFrame, split: Split, odds: Floats, options: SrsdOptions) -> list[Record]:
    subsets = {
        "all": np.ones(len(items), dtype=bool),
        **{name: (items["subset"] == name).to_numpy() for name in ("other_relation", "exchanged")},
    }
    if split == "leak_free":
        # The word pairs of this fold are not in dsbats4cl_held_out: an encoder trained on that has not met them.
        subsets["held_out"] = (items["leak_free"] == HELD_OUT).to_numpy()
    records = []
    for subset, used in subsets.items():
        if not used.any():
            continue
        part = items[used]
        labels = part["label"].to_numpy(np.int64)
        values = _accuracy((odds[used] > 0) == labels, part["first_group"], part["second_group"], options)
        values["majority"] = float(np.bincount(labels).max() / len(labels))
        if subset == "all":
            values |= seen_in_training(items, split)
        labels_of = {"suite": "srsd", "task": "srsd", "split": split, "subset": subset, "aggregation": "all"}
        shared = {"n": len(part), "sample_hash": text_hash(part, ["label", *SENTENCES, split])}
        records += [{**labels_of, "metric": name, "value": value, **shared} for name, value in values.items()]
    return records


def _accuracy(right: NDArray[Any], first: Any, second: Any, options: SrsdOptions) -> dict[str, float]:
    low, high = bootstrap_interval(right, list(first), list(second), options.draws, options.seed)
    return {"accuracy": float(right.mean()), "low": low, "high": high}


# ----------------------------------------------------------------------------------------------- analogy choice


def make_questions(
    frame: pd.DataFrame, rules: Mapping[str, RelationRule], options: SrsdOptions | None = None
) -> pd.DataFrame:
    """Draw questions: a definition pair, and four others of which exactly one stands in the same relation.

    The three wrong ones are of three other families of relations. No two pairs of a question share a word or a sentence
    with the asked one.

    Args:
        frame: relation, source, target, source_gloss, target_gloss.
        rules: families and symmetry of the relations.
        options: number and seed.

    Returns:
        A frame with ``relation``, ``group`` (of the asked pair), ``answer`` (0 to 3), and the sentences ``asked_source
        asked_target source_0 target_0 ... source_3 target_3``.

    Raises:
        SembenchError: there are too few relations for a question.
    """
    options = options or SrsdOptions()
    table = _Table(frame, rules, options)
    generator = np.random.default_rng(options.seed)
    made: list[dict[str, Any]] = []
    for relation in dict.fromkeys(table.relation):
        rows = [row for row, key in enumerate(table.relation) if key == relation]
        questions = (_question(table, rows, row, generator) for row in generator.permutation(rows).tolist())
        made += islice(filter(None, questions), options.questions)
    if not made:
        raise SembenchError(
            f"no question can be made: SRSD's test set has too few relations; choose {CHOICES} of different families"
        )
    return pd.DataFrame(made)


def _question(table: _Table, rows: Sequence[int], asked: int, generator: np.random.Generator) -> dict[str, Any] | None:
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


def analogy_choice(questions: pd.DataFrame, encode: Encode, vector: Literal["diff", "concat"]) -> Ints:
    """Return the chosen pair of each question, (questions,): the one whose relation vector has the largest cosine.

    Args:
        questions: of ``make_questions``.
        encode: gives the vectors of sentences, (sentences, width).
        vector: ``diff`` for source minus target, ``concat`` for both side by side.
    """

    def relation(source: str, target: str) -> Vectors:
        one, other = encode(questions[source].tolist()), encode(questions[target].tolist())
        return one - other if vector == "diff" else np.concatenate([one, other], axis=1)

    asked = relation("asked_source", "asked_target")
    cosines = [cosine(asked, relation(f"source_{place}", f"target_{place}")) for place in range(CHOICES)]
    found: Ints = np.argmax(cosines, axis=0)
    return found


def analogy_choice_records(
    questions: pd.DataFrame, encode: Encode, options: SrsdOptions | None = None
) -> tuple[list[Record], list[Record]]:
    """Score frozen vectors on questions.

    Returns:
        Score records as of ``srsd_records`` with the task ``analogy_choice``, the split ``test``, the relation vector
        (diff or concat) as subset, and the metrics ``accuracy``, ``low``, ``high`` (bootstrap over groups of asked
        pairs) and ``chance``; and a prediction per vector and question.
    """
    options = options or SrsdOptions()
    shared = {"n": len(questions), "sample_hash": text_hash(questions, list(questions.columns))}
    answers = questions["answer"].to_numpy(np.int64)
    records: list[Record] = []
    predictions: list[Record] = []
    vectors: tuple[Literal["diff", "concat"], ...] = ("diff", "concat")
    for vector in vectors:
        chosen = analogy_choice(questions, encode, vector)
        values = _accuracy(chosen == answers, questions["group"], questions["group"], options)
        labels = {"suite": "srsd", "task": "analogy_choice", "split": "test", "subset": vector}
        records += [
            {**labels, "aggregation": "all", "metric": name, "value": value, **shared}
            for name, value in {**values, "chance": 1 / CHOICES}.items()
        ]
        both = zip(chosen.tolist(), answers.tolist(), strict=True)
        predictions += [{**labels, "index": i, "chosen": one, "gold": other} for i, (one, other) in enumerate(both)]
    return records, predictions
