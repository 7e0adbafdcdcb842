"""Sentence relationship similarity distinguishing: do two pairs of sentences stand in the same relation?

The analogy paper's task (section 5.3, Figure 2): four sentences that make two pairs, and a classifier over their frozen
vectors. How the test items were drawn does not survive, so that is decided here: as many items with the same relation
as without, and of the latter half with a pair of another relation and half with an exchanged pair. Beside the paper's
random split there is one by word pair, since a definition seen in training gives its relation away.

Analogy choice needs no training: which of four pairs stands in the relation of the asked one?
"""
