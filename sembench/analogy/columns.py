"""Columns of the analogy data sets, for all who write or read them."""

from __future__ import annotations

# DSBATS-sn: definition pairs of word pairs, senses and all.
FRAME_COLUMNS = [
    "relation",
    "source",
    "target",
    "source_synset",
    "target_synset",
    "source_gloss",
    "target_gloss",
    "relation_name",
    "source_gloss_origin",
    "target_gloss_origin",
    "source_label",
    "target_label",
    "answer_rank",
    "source_contains_head",
    "target_contains_head",
    "fold",
]
# DSBATS4CL: three pairs a row.
ROLES = ("anchor", "positive", "third")
PAIR_FIELDS = ("source_gloss", "target_gloss", "relation", "relation_name", "inverted", "directed", "pair", "row")
ROW_COLUMNS = ["relation", "orientation", *(f"{role}_{field}" for role in ROLES for field in PAIR_FIELDS)]
# Definition pairs that people write: registry/dsbats_open.tsv, or a test set of one's own.
PAIR_COLUMNS = ["relation", "source", "target", "source_sentence", "target_sentence"]
# DSBATS-open; the last column follows in the files, see folds.py.
OPEN_COLUMNS = ["relation", "source", "target", "source_gloss", "target_gloss", "origin"]
