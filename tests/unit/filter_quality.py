"""How the filter's rules were chosen: counts per relation, and comparison with hand-made labels beside two baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from sembench.analogy.bats import WordPair
from sembench.analogy.filters import Filter
from sembench.analogy.inventory.base import Inventory
from sembench.analogy.rules import BuildOptions, RelationRule, rule_of
from sembench.core.errors import SembenchError


def coverage(pairs: Iterable[WordPair], inventory: Inventory, rules: Mapping[str, RelationRule]) -> pd.DataFrame:
    """Count, per relation, all word pairs, those with both words in the inventory, and those the side rules keep.

    Neither caps nor the graph count here: these are the columns "wp / in WN / kept" by which the rules were chosen.

    Returns:
        A frame with the index ``relation`` and the columns ``word_pairs found kept``.
    """
    check = Filter(rules, inventory, BuildOptions(graph=False, senses=0))
    rows = []
    for pair in pairs:
        words = (pair.source, pair.target)
        found = all(check.verdicts(pair.relation, side, word) for side, word in enumerate(words))
        rows.append((pair.relation, 1, int(found), int(bool(check.select(pair).pairs))))
    frame = pd.DataFrame(rows, columns=["relation", "word_pairs", "found", "kept"])
    return frame.groupby("relation", sort=False).sum()


# ------------------------------------------------------------------------------------------------- its quality

LABEL_COLUMNS = ["relation", "side", "word", "synset", "valid"]


def read_labels(path: Path) -> pd.DataFrame:
    """Return hand-made labels: relation, side, word, synset id, and whether the sense belongs to the relation (1 or 0).

    Raises:
        SembenchError: missing file, wrong header, or a value that is none of those.
    """
    if not path.is_file():
        raise SembenchError(f"{path} does not exist; restore it from version control")
    labels = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    if list(labels.columns) != LABEL_COLUMNS:
        raise SembenchError(f"{path}, line 1: the header must be {' '.join(LABEL_COLUMNS)}, separated by TABs")
    wrong = labels.index[~(labels["side"].isin(["source", "target"]) & labels["valid"].isin(["0", "1"]))]
    if len(wrong):
        raise SembenchError(f"{path}, line {wrong[0] + 2}: side must be source or target, and valid 0 or 1")
    return labels.astype({"valid": int})


def quality(
    labels: pd.DataFrame, report: pd.DataFrame, inventory: Inventory, rules: Mapping[str, RelationRule]
) -> pd.DataFrame:
    """Compare the filter with hand-made labels, beside two baselines.

    The baselines take the first sense of the side's preferred part of speech, and all senses of an admitted part of
    speech.

    Args:
        labels: see ``read_labels``.
        report: of a build over the labelled words; a sense that it lacks counts as rejected.
        inventory: in which the baselines look words up.
        rules: for the parts of speech of each side.

    Returns:
        A frame with the index ``method`` and the columns ``tp fp fn tn precision recall f1``; nan where undefined.
    """
    kept = set(report.loc[report["kept"] == 1, LABEL_COLUMNS[:4]].itertuples(index=False, name=None))
    methods: dict[str, list[bool]] = {"filter": [], "first sense": [], "POS only": []}
    for relation, side, word, synset in labels[LABEL_COLUMNS[:4]].itertuples(index=False, name=None):
        rule = rule_of(rules, relation)
        tags = tuple(dict.fromkeys(choice.pos for choice in (rule.source if side == "source" else rule.target)))
        senses = [found.id for found in inventory.synsets(word, tags)]
        methods["filter"].append((relation, side, word, synset) in kept)
        methods["first sense"].append(senses[:1] == [synset])
        methods["POS only"].append(synset in senses)
    truth = labels["valid"].astype(bool).tolist()
    rows = [_scores(name, truth, guesses) for name, guesses in methods.items()]
    return pd.DataFrame(rows).set_index("method")


def _scores(name: str, truth: list[bool], guesses: list[bool]) -> dict[str, str | float]:
    counts = Counter(zip(truth, guesses, strict=True))
    tp, fp, fn, tn = counts[True, True], counts[False, True], counts[True, False], counts[False, False]
    precision = tp / (tp + fp) if tp + fp else float("nan")
    recall = tp / (tp + fn) if tp + fn else float("nan")
    f1 = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else float("nan")
    return {"method": name, "tp": tp, "fp": fp, "fn": fn, "tn": tn, "precision": precision, "recall": recall, "f1": f1}
