"""Folds of word pairs: what is tested must not have been trained on, neither by a classifier nor by an encoder.

The paper's test set has the word pairs of its training set, only with other sentences. One fold is therefore held out:
``dsbats4cl_held_out`` is made without its pairs, and SRSD reports the accuracy on them apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from sembench.analogy.bats import WordPair
from sembench.core.lazy import np, pd

FOLDS = 5
HELD_OUT = 0


def pair_groups(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the group of each word pair, named after one of its sources.

    Pairs of one source are a group, since they share its definition; so are pairs that are each other exchanged, and
    what hangs together by such links.
    """
    wanted = list(dict.fromkeys(pairs))
    parent = {source: source for source, _ in wanted}

    def root(word: str) -> str:
        while parent[word] != word:
            word = parent[word]
        return word

    known = set(wanted)
    for source, target in wanted:
        if (target, source) in known:
            parent[max(root(source), root(target))] = min(root(source), root(target))
    return {pair: root(pair[0]) for pair in wanted}


def pair_folds(table: Iterable[tuple[str, str, str]], folds: int, seed: int) -> dict[tuple[str, str], int]:
    """Deal word pairs into folds: no source and no pair, exchanged or not, is in two; each relation spread evenly.

    Given all pairs of BATS, the result serves DSBATS-sn and DSBATS-open alike: to keep the pairs of a fold from the
    training of an encoder, and to test on that fold alone.

    Args:
        table: relation, source and target of each pair.
        folds: number of folds.
        seed: decides between groups of one size.
    """
    rows = list(dict.fromkeys(table))
    groups = pair_groups((source, target) for _, source, target in rows)
    members: dict[str, Counter[str]] = defaultdict(Counter)
    for relation, source, target in rows:
        members[groups[source, target]][relation] += 1
    order = sorted(members)
    np.random.default_rng(seed).shuffle(order)
    loads: list[Counter[str]] = [Counter() for _ in range(folds)]
    chosen: dict[str, int] = {}
    for group in sorted(order, key=lambda name: -members[name].total()):
        costs = [
            (sum(load[key] * count for key, count in members[group].items()), load.total(), place)
            for place, load in enumerate(loads)
        ]
        chosen[group] = min(costs)[2]
        loads[chosen[group]] += members[group]
    return {pair: chosen[group] for pair, group in groups.items()}


def with_folds(frame: pd.DataFrame, pairs: Iterable[WordPair]) -> pd.DataFrame:
    """Return definition pairs with a last column ``fold``, the same for a word pair whatever its definitions.

    Args:
        frame: has the columns ``relation``, ``source`` and ``target``.
        pairs: all word pairs of the chosen relations, which decide. Pairs that are none of them, not even exchanged or
            by their source, are dealt among themselves.
    """
    folds = pair_folds(((pair.relation, pair.source, pair.target) for pair in pairs), FOLDS, seed=0)
    of_source = {source: fold for (source, _), fold in folds.items()}
    rows = list(frame[["relation", "source", "target"]].itertuples(index=False, name=None))
    known = [folds.get((target, source), of_source.get(source)) for _, source, target in rows]
    others = pair_folds((row for row, fold in zip(rows, known, strict=True) if fold is None), FOLDS, seed=0)
    dealt = [others[row[1:]] if fold is None else fold for row, fold in zip(rows, known, strict=True)]
    return frame.assign(fold=np.array(dealt, dtype=np.int64))
