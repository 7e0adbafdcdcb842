"""Fetching the senses of many words, over as many days as a daily limit asks for.

An answer that is stored is never asked for again. A process killed while a request is under way has not stored its
answer, so at most that one request is sent a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sembench.analogy.inventory.babelnet import BabelNetClient, BudgetSpent, LimitReached
from sembench.analogy.inventory.babelnet_answers import (
    ids_of,
    ids_params,
    spelled_out,
    spoken,
    synset_params,
)
from sembench.analogy.inventory.base import Pos
from sembench.analogy.inventory.cache import AnswerCache
from sembench.core.progress import Interval

Word = tuple[str, Pos]
Say = Callable[[str], None]
Stopped = Literal["complete", "budget", "limit"]

# Synsets a word before any was looked up: about three in WordNet, and BabelNet has several times more (35 of "duck"
# against 8).
FAN_OUT = 10.0
FAN_OUT_OF_ONE_SOURCE = 3.0


@dataclass(frozen=True)
class CrawlPlan:
    """How many requests a crawl still needs.

    Attributes:
        words: different pairs of word and part of speech.
        complete: those of them that need no request any more.
        version: 1 if the version must still be asked for.
        lookups: words whose synsets are still unknown.
        synsets: known synsets that are still to be fetched.
        fan_out: synsets a word, those shared with other words counted once.
        measured: whether ``fan_out`` was measured on the words looked up so far and is not a guess.
        estimated: estimate of the requests for synsets of words that were not looked up yet.
    """

    words: int
    complete: int
    version: int
    lookups: int
    synsets: int
    fan_out: float
    measured: bool
    estimated: int

    @property
    def remaining(self) -> int:
        """Requests that are needed for sure: a lower bound until all words are looked up, exact from then on."""
        return self.version + self.lookups + self.synsets

    @property
    def expected(self) -> int:
        """Requests that are probably needed; an estimate while words are to be looked up."""
        return self.remaining + self.estimated


@dataclass(frozen=True)
class CrawlReport:
    """What a crawl did.

    Attributes:
        done: words that are complete now.
        spent: requests sent in this run.
        plan: what remains.
        stopped: why it ended; ``budget`` is the own limit, ``limit`` the service's.
        message: the sentence of whoever stopped it, or nothing.
    """

    done: int
    spent: int
    plan: CrawlPlan
    stopped: Stopped
    message: str = ""

    @property
    def remaining(self) -> int:
        """Requests that are still needed for sure."""
        return self.plan.remaining


def plan(words: Iterable[Word], cache: AnswerCache, *, source: str | None = None) -> CrawlPlan:
    """Return how many requests a crawl of these words still needs; asks nobody.

    Args:
        words: words and parts of speech; underscores, capitals, and repetitions do not matter.
        cache: what is known so far.
        source: only senses of this resource.

    Raises:
        SembenchError: A file of the cache is damaged.
    """
    wanted = _different(words)
    known = {word: ids for word in wanted if (ids := _known_ids(word, cache, source)) is not None}
    synsets = {synset for ids in known.values() for synset in ids}
    unfetched = {one for one in synsets if not cache.has("getSynset", synset_params(one))}
    guess = FAN_OUT_OF_ONE_SOURCE if source else FAN_OUT
    fan_out = len(synsets) / len(known) if known else guess
    lookups = len(wanted) - len(known)
    return CrawlPlan(
        words=len(wanted),
        complete=sum(1 for ids in known.values() if not unfetched.intersection(ids)),
        version=0 if cache.has("getVersion", {}) else 1,
        lookups=lookups,
        synsets=len(unfetched),
        fan_out=fan_out,
        measured=bool(known),
        estimated=round(lookups * fan_out),
    )


def crawl(
    words: Iterable[Word],
    client: BabelNetClient,
    *,
    source: str | None = None,
    say: Say | None = None,
) -> CrawlReport:
    """Fetch what is missing, word by word, until all is there or a limit is met; the next call goes on from there.

    A word is completed before the next one begins, so that a crawl of weeks can be used meanwhile.
    Limits for a run and a day are the client's. Several crawls may share a cache folder: none asks what another did.

    Args:
        words: words and parts of speech, the most wanted first.
        client: asks the service, and has the cache.
        source: only senses of this resource.
        say: takes a line about progress once a minute.

    Raises:
        KeyRejected: The service refused the key.
        PassingError: The service failed several times in a row; what was fetched is kept.
        SembenchError: An answer is a complaint or makes no sense.
    """
    wanted, begun, message = _different(words), client.spent, ""
    progress = _Progress(wanted, client, source, say)
    stopped: Stopped = "complete"
    try:
        client.version()
        for word in wanted:
            _complete(word, client, source, progress)
    except BudgetSpent as error:
        stopped, message = "budget", str(error)
    except LimitReached as error:
        stopped, message = "limit", str(error)
    left = plan(wanted, client.cache, source=source)
    return CrawlReport(left.complete, client.spent - begun, left, stopped, message)


def _different(words: Iterable[Word]) -> list[Word]:
    return list(dict.fromkeys((spoken(lemma), pos) for lemma, pos in words))


def _known_ids(word: Word, cache: AnswerCache, source: str | None) -> list[str] | None:
    params = ids_params(*word, source)
    answer = cache.get("getSynsetIds", params)
    if answer is None:
        return None
    return ids_of(answer.body, f"the stored answer to {spelled_out('getSynsetIds', params)}") if answer.found else []


def _complete(word: Word, client: BabelNetClient, source: str | None, progress: _Progress) -> None:
    cache = client.cache
    for synset in client.synset_ids(*word, source):
        # Looking whether a file is there is much cheaper than reading it.
        if not cache.has("getSynset", synset_params(synset)):
            client.synset(synset)
        progress.say()


class _Progress:
    """Says once a minute how far a crawl is; when a daily limit will be met is not known, so it is left out."""

    def __init__(self, words: Sequence[Word], client: BabelNetClient, source: str | None, say: Say | None) -> None:
        self._words, self._client, self._source, self._say = words, client, source, say
        self._interval, self._first = Interval(), client.spent

    def say(self) -> None:
        """Say a line if the last one was a minute ago."""
        if self._say is None or not self._interval.is_over():
            return
        spent = self._client.spent - self._first
        left = plan(self._words, self._client.cache, source=self._source)
        rate = spent / self._interval.seconds
        eta = f", about {left.expected / rate:.0f} s left without a limit" if rate else ""
        self._say(f"{left.complete} of {left.words} words, {spent} requests, {rate:.1f} a second{eta}")
