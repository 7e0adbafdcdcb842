"""SentEval's classifiers one after the other, in plain loops: what the batched ones must equal, and are timed against.

PyTorch's own layer, loss, gradient and optimiser, scikit-learn's folds; nothing is shared between two fits.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from sembench.evaluation.folds import Ints, Job
from sembench.evaluation.probes import Settings
from sembench.evaluation.schemes import Choice, Tested

Array = NDArray[np.floating]
OPTIMISERS = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}


def one_fit(features: Array, labels: Ints, job: Job, l2: float, settings: Settings) -> tuple[torch.Tensor, float, int]:
    """Return weights (classes, width + 1) of one classifier, its best accuracy and the number of its checks."""
    inputs, truth = torch.from_numpy(features), torch.from_numpy(labels)
    torch.manual_seed(settings.seed)
    layer = torch.nn.Linear(features.shape[1], int(labels.max()) + 1).to(inputs.dtype)
    optimiser = OPTIMISERS[settings.optimiser](layer.parameters(), lr=settings.learning_rate, weight_decay=l2)
    loss = torch.nn.CrossEntropyLoss()
    order, train, dev = copy.deepcopy(job.order), torch.from_numpy(job.train), torch.from_numpy(job.dev)
    best, kept, bad, checks, epoch, stop = -1.0, layer, 0, 0, 0, False
    while not stop and epoch <= settings.max_epoch:
        for _ in range(settings.epoch_size):
            shuffled = train[torch.from_numpy(order.permutation(len(train)))]
            for batch in shuffled.split(settings.batch_size):
                optimiser.zero_grad()
                loss(layer(inputs[batch]), truth[batch]).backward()
                optimiser.step()
        epoch += settings.epoch_size
        checks += 1
        with torch.no_grad():
            accuracy = (layer(inputs[dev]).argmax(dim=1) == truth[dev]).double().mean().item()
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(layer)
        else:
            stop = bad >= settings.tenacity
            bad += 1
    return torch.cat([kept.weight, kept.bias[:, None]], dim=1).detach(), best, checks


def guesses(weights: torch.Tensor, features: Array) -> Ints:
    """Return the class of each row."""
    found: Ints = (torch.from_numpy(features) @ weights[:, :-1].T + weights[:, -1]).argmax(dim=1).numpy()
    return found


def sides(labels: Ints, choice: Choice) -> Iterator[tuple[Ints, Ints]]:
    """Yield the rows outside and inside each fold."""
    split = StratifiedKFold(choice.folds, shuffle=True, random_state=choice.seed)
    yield from split.split(np.zeros((len(labels), 1)), labels)


def best_of(accuracies: list[float], choice: Choice) -> tuple[float, float]:
    """Return the strength of the best accuracy in hundredths of a percent, and that accuracy, 0 to 1."""
    rounded = [round(100 * accuracy, 2) for accuracy in accuracies]
    return choice.l2[int(np.argmax(rounded))], max(rounded) / 100


def cross_validated(features: Array, labels: Ints, choice: Choice, settings: Settings) -> tuple[float, float]:
    """Return the strength that cross-validation chooses, and its accuracy."""
    means = []
    for l2 in choice.l2:
        jobs = [Job(train, dev, np.random.RandomState(choice.seed)) for train, dev in sides(labels, choice)]
        means.append(float(np.mean([one_fit(features, labels, job, l2, settings)[1] for job in jobs])))
    return best_of(means, choice)


def last_fit(features: Array, labels: Ints, l2: float, choice: Choice, settings: Settings) -> torch.Tensor:
    """Return the weights of the last fit: the first rows of a permutation are checked, the others trained on."""
    generator = np.random.RandomState(choice.seed)
    order = generator.permutation(len(labels))
    cut = int(choice.held_out * len(labels))
    return one_fit(features, labels, Job(order[cut:], order[:cut], generator), l2, settings)[0]


def train_test(features: Array, labels: Ints, test: Array, choice: Choice, settings: Settings) -> list[Tested]:
    """MRPC and TREC."""
    l2, accuracy = cross_validated(features, labels, choice, settings)
    weights = last_fit(features, labels, l2, choice, settings)
    return [Tested(np.arange(len(test)), guesses(weights, test), l2, accuracy)]


def fixed(
    features: Array, labels: Ints, dev: Array, dev_labels: Ints, test: Array, choice: Choice, settings: Settings
) -> list[Tested]:
    """SST-2."""
    joined, both = np.concatenate([features, dev]), np.concatenate([labels, dev_labels])

    def fit(l2: float) -> tuple[torch.Tensor, float, int]:
        rows = np.arange(len(both))
        cut = len(labels)
        return one_fit(joined, both, Job(rows[:cut], rows[cut:], np.random.RandomState(choice.seed)), l2, settings)

    l2, accuracy = best_of([fit(strength)[1] for strength in choice.l2], choice)
    return [Tested(np.arange(len(test)), guesses(fit(l2)[0], test), l2, accuracy)]


def nested(features: Array, labels: Ints, choice: Choice, settings: Settings) -> list[Tested]:
    """MR, CR, SUBJ and MPQA."""
    found = []
    for train, tested in sides(labels, choice):
        l2, accuracy = cross_validated(features[train], labels[train], choice, settings)
        weights = last_fit(features[train], labels[train], l2, choice, settings)
        found.append(Tested(tested, guesses(weights, features[tested]), l2, accuracy))
    return found
