"""Supervised SimCSE with neutral hypotheses as second hard negatives (SimCSE, Table 7, "Contra.+neutral")."""

from __future__ import annotations

from sembench.training.objectives.supervised import Supervised


class SupervisedNeutral(Supervised):
    """Rows of anchor, positive and two hard negatives; the public code takes only one (4 columns end in an error)."""

    columns = (*Supervised.columns, "neutral")


PLUGIN = SupervisedNeutral
