"""The BabelNet client, its cache, inventory and crawl, against a made-up service on this machine."""

from __future__ import annotations

import html
import json
import logging
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pandas as pd
import pytest
import tenacity

from sembench.analogy.bats import WordPair
from sembench.analogy.dsbats import build_dsbats_sn
from sembench.analogy.inventory import babelnet
from sembench.analogy.inventory import cache as cache_module
from sembench.analogy.inventory.babelnet import (
    ApiKey,
    BabelNetClient,
    BabelNetInventory,
    BudgetSpent,
    KeyRejected,
    LimitReached,
    PassingError,
)
from sembench.analogy.inventory.babelnet_answers import edges_params, synset_params
from sembench.analogy.inventory.base import Gloss, Inventory, Synset
from sembench.analogy.inventory.cache import AnswerCache
from sembench.analogy.inventory.commands import crawl_text, plan_text
from sembench.analogy.inventory.crawl import FAN_OUT, CrawlReport, crawl, plan
from sembench.analogy.inventory.dump import DumpInventory, export_dump
from sembench.analogy.rules import BuildOptions, load_rules
from sembench.core.errors import SembenchError
from tests.unit import fake_babelnet as fake
from tests.unit.fake_babelnet import KEY, FakeBabelNet

ROOT = Path(__file__).parents[2]
WORDS: list[Any] = [("Florn", "NOUN"), ("river_florn", "NOUN"), ("florn", "VERB"), ("mulp", "VERB"), ("florn", "NOUN")]


class Clock:
    """A clock in UTC that a test sets."""

    def __init__(self) -> None:
        self.time = datetime(2031, 5, 4, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def next_day(self) -> None:
        self.time += timedelta(days=1)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BABELNET_KEY", KEY)
    monkeypatch.setattr(babelnet, "WAIT", tenacity.wait_none())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBabelNet]:
    with fake.running(count=40) as running:
        monkeypatch.setenv("BABELNET_URL", running.url)
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(tmp_path: Path, clock: Clock) -> AnswerCache:
    return AnswerCache(tmp_path / "answers", now=clock)


@pytest.fixture
def client(server: FakeBabelNet, cache: AnswerCache) -> BabelNetClient:
    return BabelNetClient(cache)


def lexfile_of(offset: str) -> str | None:
    return {"10000101n": "noun.animal", "10000104n": "noun.communication"}.get(offset)


def stored(cache: AnswerCache) -> set[fake.Request]:
    return {(answer.method, answer.params) for method in fake.METHODS for answer in cache.answers(method)}


# ------------------------------------------------------------------------------------------------- cache


def test_an_answer_comes_back_whatever_the_order_of_parameters(cache: AnswerCache) -> None:
    cache.put("getSenses", {"lemma": "bal", "searchLang": ["IT", "EN"]}, 200, [{"ö": 1}])
    answer = cache.get("getSenses", {"searchLang": ["EN", "IT"], "lemma": "bal"})
    assert answer and answer.body == [{"ö": 1}] and answer.found
    assert answer.params == (("lemma", "bal"), ("searchLang", "EN"), ("searchLang", "IT"))
    assert answer.fetched_at == "2031-05-04T12:00:00+00:00"
    assert not cache.has("getSenses", {"lemma": "bal"})


def test_files_lie_in_two_levels_of_folders_and_say_what_they_are(cache: AnswerCache, tmp_path: Path) -> None:
    cache.put("getSynset", {"id": "bn:00000001n"}, 400, {"message": "BabelSynset not found."})
    (path,) = (tmp_path / "answers").rglob("*.json")
    digest = path.stem
    assert path.relative_to(tmp_path) == Path("answers/v9/getSynset") / digest[:2] / f"{digest}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["api"] == "v9" and content["status"] == 400 and content["params"] == [["id", "bn:00000001n"]]
    assert AnswerCache(tmp_path / "answers", api="v8").get("getSynset", {"id": "bn:00000001n"}) is None


def test_a_key_and_a_refusal_are_never_stored(cache: AnswerCache, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a parameter"):
        cache.put("getSynset", {"id": "bn:1", "key": KEY}, 200, {})
    for status in (403, 500):
        with pytest.raises(ValueError, match="is not kept"):
            cache.put("getSynset", {"id": "bn:1"}, status, {})
    assert not (tmp_path / "answers").exists()
    for name in ("../x", "a/b", ""):
        with pytest.raises(ValueError, match="cannot name a folder"):
            cache.path(name, {})


@pytest.mark.parametrize("content", ["", '{"method": "getSynset"', "[]", '{"params": 3}'])
def test_a_damaged_answer_is_named_with_its_remedy(cache: AnswerCache, content: str) -> None:
    path = cache.path("getVersion", {})
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(SembenchError, match=rf"{path.name} is .*delete it"):
        cache.get("getVersion", {})


def test_what_a_killed_process_left_is_no_answer(cache: AnswerCache) -> None:
    cache.put("getSynset", {"id": "bn:00000002n"}, 200, {"b": 1})
    cache.put("getSynset", {"id": "bn:00000001n"}, 200, {"a": 1})
    path = cache.path("getSynset", {"id": "bn:00000001n"})
    (path.parent / f".{path.stem}.x3k2.json").write_text("{")
    assert [answer.body for answer in cache.answers("getSynset")] == [{"a": 1}, {"b": 1}]


def test_the_ledger_counts_by_day(cache: AnswerCache, clock: Clock) -> None:
    assert cache.ledger.days() == {} and cache.ledger.today == 0
    cache.ledger.take_back()
    cache.ledger.add()
    cache.ledger.add()
    clock.next_day()
    cache.ledger.add()
    cache.ledger.add()
    cache.ledger.take_back()
    assert cache.ledger.days() == {"2031-05-04": 2, "2031-05-05": 1} and cache.ledger.today == 1


# ------------------------------------------------------------------------------------------------- client


def test_every_method_is_asked_once(server: FakeBabelNet, client: BabelNetClient) -> None:
    for _ in range(2):
        assert client.version() == "V5_3"
        assert client.synset_ids("Florn", "NOUN")[3:] == [fake.FLORN, fake.GHOST]
        assert client.synset_ids("no such thing", "NOUN") == []
        body = client.synset(fake.FLORN)
        assert body and body["wnOffsets"][0]["version"] == "OEWN"
        assert client.synset(fake.GHOST) is None
        assert client.ask("getOutgoingEdges", edges_params(fake.FLORN)).body[0]["target"] == fake.FLORN_NET
        assert not client.ask("getOutgoingEdges", edges_params(fake.GHOST)).found
        assert len(client.ask("getSenses", {"lemma": "mulp", "searchLang": "EN"}).body) == 1
        resource = {"id": "wn:20000301v", "source": "WN"}
        assert client.ask("getSynsetIdsFromResourceID", resource).body[0]["id"] == fake.MULP
    assert set(server.counts.values()) == {1}
    assert client.spent == sum(server.counts.values()) == server.received == 9
    assert client.cache.ledger.today == 9
    assert server.headers["Accept-Encoding"] == "gzip"


def test_parameters_are_repeated_and_words_have_one_spelling(server: FakeBabelNet, client: BabelNetClient) -> None:
    client.ask("getSenses", {"lemma": "mulp", "searchLang": ["EN", "IT"]})
    assert ("getSenses", (("lemma", "mulp"), ("searchLang", "EN"), ("searchLang", "IT"))) in server.counts
    for spelling in ("River_Florn", "river  florn", "RIVER FLORN "):
        assert client.synset_ids(spelling, "NOUN") == [fake.FLORN]
    assert server.received == 2
    assert client.synset_ids("florn", "NOUN", source="WN") == [fake.FLORN_TUNE, fake.FLORN]


@pytest.mark.parametrize("value", ["", "  ", "short", "two words here"])
def test_a_key_that_cannot_be_one(server: FakeBabelNet, cache: AnswerCache, monkeypatch: Any, value: str) -> None:
    monkeypatch.setenv("BABELNET_KEY", value)
    with pytest.raises(SembenchError, match=r"BABELNET_KEY (is not set|does not look like a key)"):
        BabelNetClient(cache)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://babelnet.example", True),
        ("https://babelnet.example:8443/mirror/", True),
        ("http://127.0.0.1:9", True),
        ("http://127.8.9.1:9", True),
        ("http://[::1]:9", True),
        ("http://localhost:9", True),
        ("http://babelnet.example", False),
        ("http://localhost.example:9", False),
        ("http://127.0.0.1.example", False),
        ("http://10.0.0.1", False),
        ("http://0.0.0.0:9", False),
        ("ftp://127.0.0.1", False),
        ("babelnet.example", False),
        ("https://user:secret@babelnet.example", False),
        ("https://babelnet.example/?key=1", False),
        ("https://babelnet.example:port", False),
        ("https://[::1", False),
    ],
)
def test_where_the_key_may_be_sent(cache: AnswerCache, monkeypatch: Any, url: str, allowed: bool) -> None:
    monkeypatch.setenv("BABELNET_URL", url)
    if allowed:
        assert url.rstrip("/") in repr(BabelNetClient(cache))
        return
    with pytest.raises(SembenchError, match="BABELNET_URL") as caught:
        BabelNetClient(cache)
    assert "secret" not in str(caught.value)


def test_the_official_address_is_the_default(cache: AnswerCache, monkeypatch: Any) -> None:
    monkeypatch.delenv("BABELNET_URL", raising=False)
    assert repr(BabelNetClient(cache)) == "BabelNetClient(https://babelnet.io/v9, spent=0)"


def test_no_proxy_sees_a_key_in_clear(server: FakeBabelNet, cache: AnswerCache, monkeypatch: Any) -> None:
    with fake.running() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        assert BabelNetClient(cache).version() == "V5_3"
        assert proxy.received == 0


def test_500_once_is_overcome_and_counted(server: FakeBabelNet, client: BabelNetClient) -> None:
    server.failures = [500]
    assert client.version() == "V5_3"
    assert (server.received, client.spent, client.cache.ledger.today) == (2, 2, 2)


def test_a_service_that_stays_down(server: FakeBabelNet, client: BabelNetClient) -> None:
    server.failures = [503] * 9
    with pytest.raises(PassingError, match="answered 503 for getVersion; what was answered is kept"):
        client.version()
    assert server.received == babelnet.TRIES and not stored(client.cache)


def test_a_slow_service(server: FakeBabelNet, client: BabelNetClient, monkeypatch: Any) -> None:
    monkeypatch.setattr(babelnet, "TIMEOUT", (1, 0.05))
    server.slow = 0.3
    with pytest.raises(PassingError, match=r"cannot be reached \((ReadTimeout|ConnectionError)\)"):
        client.version()
    assert client.spent == babelnet.TRIES


def test_nobody_answers(cache: AnswerCache, monkeypatch: Any) -> None:
    with fake.running() as gone:
        monkeypatch.setenv("BABELNET_URL", gone.url)
    with pytest.raises(PassingError, match=r"cannot be reached \(ConnectionError\)"):
        BabelNetClient(cache).version()


@pytest.mark.parametrize("with_200", [False, True])
def test_wrong_parameters_are_not_tried_again(server: FakeBabelNet, client: BabelNetClient, with_200: bool) -> None:
    server.message_with_200 = with_200
    with pytest.raises(SembenchError, match=r"getSynsetIds\(lemma=\) with (200|400) and said: Wrong parameters"):
        client.ask("getSynsetIds", {"lemma": ""})
    assert server.received == 1 and not stored(client.cache)


def test_429_is_a_limit_and_costs_nothing(server: FakeBabelNet, client: BabelNetClient) -> None:
    client.version()
    server.failures = [429]
    with pytest.raises(LimitReached, match="answers 429, too many requests, after 1 requests today"):
        client.synset(fake.FLORN)
    assert client.spent == client.cache.ledger.today == 1 and server.received == 2
    server.failures = [429]
    report = crawl(WORDS, client)
    assert report.stopped == "limit" and report.remaining
    assert crawl(WORDS, client).stopped == "complete"


def test_429_at_first_says_nothing_about_the_key(server: FakeBabelNet, client: BabelNetClient) -> None:
    server.failures, server.more_headers = [429], {"Retry-After": "7"}
    with pytest.raises(LimitReached, match="after 0 requests today; what was answered is kept, go on in 7 seconds"):
        client.version()


@pytest.mark.parametrize("body", [b"{}", b'{"status": 429}', b'{"senses": null}', b'{"glosses": []}', b"null"])
def test_what_has_no_senses_is_no_sense(server: FakeBabelNet, client: BabelNetClient, body: bytes) -> None:
    server.bodies["getSynset"] = body
    with pytest.raises(SembenchError, match=r"getSynset\(.*\) has a shape .*: it is no object with 'senses'"):
        client.synset(fake.FLORN)
    assert not stored(client.cache)


def test_an_empty_sense_that_was_kept_once_is_named(client: BabelNetClient) -> None:
    crawl(WORDS, client)
    path = client.cache.path("getSynset", synset_params(fake.MULP))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"body": {}}))
    with pytest.raises(SembenchError, match=rf"{path.name} holds no sense; delete it, and the next crawl asks"):
        BabelNetInventory(client.cache).synsets("mulp", ["VERB"])
    path.unlink()
    assert crawl(WORDS, client).spent == 1
    assert BabelNetInventory(client.cache).synsets("mulp", ["VERB"])


@pytest.mark.parametrize("status", [302, 404])
def test_other_answers_are_neither_tried_again_nor_kept(
    server: FakeBabelNet, client: BabelNetClient, status: int
) -> None:
    server.failures = [status]
    with pytest.raises(SembenchError, match=rf"with {status} and said: out of order"):
        client.version()
    assert server.received == 1 and not stored(client.cache)


def test_not_found_with_200_is_known_and_kept(server: FakeBabelNet, client: BabelNetClient) -> None:
    server.message_with_200 = True
    assert [client.synset(fake.GHOST) for _ in range(2)] == [None, None]
    assert server.received == 1


@pytest.mark.parametrize("with_200", [False, True])
def test_a_bad_key_differs_from_a_spent_limit(
    server: FakeBabelNet, client: BabelNetClient, clock: Clock, with_200: bool
) -> None:
    server.message_with_200, server.limit = with_200, 0
    with pytest.raises(KeyRejected, match="refused the first request of today: the key in BABELNET_KEY is not valid"):
        client.version()
    assert client.spent == 0 and client.cache.ledger.today == 0
    server.limit = 2
    client.version()
    client.synset(fake.FLORN)
    with pytest.raises(LimitReached, match="after 2 requests today: the daily limit"):
        client.synset(fake.MULP)
    with pytest.raises(LimitReached):  # a new run on the same day
        BabelNetClient(client.cache).synset(fake.MULP)
    assert server.received == 5 and len(stored(client.cache)) == 2  # refusals are not tried again and not kept
    clock.next_day()
    server.new_day()
    assert client.synset(fake.MULP)


def test_too_many_keys(server: FakeBabelNet, client: BabelNetClient) -> None:
    server.too_many_keys = True
    with pytest.raises(KeyRejected, match=r"it said: The maximum keys number per IP has been reached\.\)"):
        client.version()


def test_own_limits(server: FakeBabelNet, cache: AnswerCache, clock: Clock) -> None:
    client = BabelNetClient(cache, max_requests=2)
    client.version()
    client.synset(fake.FLORN)
    client.synset(fake.FLORN)
    with pytest.raises(BudgetSpent, match="the 2 requests of this run are spent"):
        client.synset(fake.MULP)
    assert BabelNetClient(cache, max_requests=1).synset(fake.MULP)
    assert server.received == 3


def test_the_version_may_be_written_small(server: FakeBabelNet, client: BabelNetClient) -> None:
    server.version = "v5_3"  # older services wrote it small
    assert client.version() == "V5_3"


def test_an_unexpected_version_is_refused(server: FakeBabelNet, client: BabelNetClient) -> None:
    server.version = "V5_2"
    with pytest.raises(SembenchError, match="version V5_2 where API v9 had V5_3"):
        client.version()


@pytest.mark.parametrize(
    ("method", "body", "problem"),
    [
        ("getVersion", b"[]", "'version' is not a text"),
        ("getSynset", b"[]", "it is no object with 'senses'"),
        ("getSynset", b'{"senses": 3}', "it is no object with 'senses'"),
        ("getSynset", b'{"senses": [3]}', "'senses' is not a list of objects"),
        ("getSynset", b'{"senses": [{"properties": []}]}', "'properties' is not an object"),
        ("getSynset", b'{"senses": [], "glosses": ["text"]}', "'glosses' is not a list of objects"),
        ("getSynset", b'{"senses": [], "glosses": [{"gloss": 1}]}', "'gloss' is not a text"),
        ("getSynset", b'{"senses": [], "domains": []}', "'domains' is not an object"),
        ("getSynset", b'{"senses": [], "domains": {"TIME": "much"}}', "the weight of domain 'TIME' is not a number"),
        ("getSynset", b'{"senses": [], "domains": {"TIME": NaN}}', "the weight of domain 'TIME' is not a number"),
        ("getSynset", b'{"senses": [], "domains": {"TIME": 1' + b"0" * 400 + b"}}", "the weight of domain 'TIME'"),
        ("getSynsetIds", b'{"id": "bn:00000101n"}', "it is not a list"),
        ("getSynsetIds", b'[{"id": "00000101n"}]', "'00000101n' is not the id of a synset"),
        ("getOutgoingEdges", b'[{"pointer": "@"}]', "'pointer' is not an object"),
        ("getSenses", b"{}", "it is not a list"),
    ],
)
def test_nonsense_is_one_sentence_and_not_kept(
    server: FakeBabelNet, client: BabelNetClient, method: str, body: bytes, problem: str
) -> None:
    server.bodies[method] = body
    with pytest.raises(SembenchError, match=rf"BabelNet's answer to {method}\(.*\) has a shape .*: {problem}"):
        client.ask(method, {"id": fake.FLORN})
    assert not stored(client.cache)


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b'{"version": "V5', b"\xff\xfe\xff", b"[" * 100_000, b'{"version": "\\ud800"}', b"1" * 5000],
)
def test_what_is_not_json(server: FakeBabelNet, client: BabelNetClient, body: bytes) -> None:
    server.bodies["getVersion"] = body
    with pytest.raises(SembenchError, match=r"getVersion\(\) is not JSON"):
        client.version()


# ------------------------------------------------------------------------------------------------- the key


def spellings() -> set[str]:
    return {KEY, quote(KEY), quote(KEY, safe=""), quote_plus(KEY)}


def everything_said(error: BaseException) -> str:
    """Return what the fullest traceback would print: all chained errors, hidden ones as well, with local variables."""
    said, ahead = [], [error]
    while ahead:
        one = ahead.pop()
        said += [repr(one), *traceback.TracebackException.from_exception(one, capture_locals=True).format()]
        ahead += [other for other in (one.__cause__, one.__context__) if other is not None]
    return "\n".join(said)


def echo(server: FakeBabelNet) -> None:
    server.bodies["getVersion"] = json.dumps({"version": f"V5_3 for {KEY}"}).encode()


ESCAPES: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in capitals": str.upper,
    "address": lambda key: quote(key, safe=""),
    "address, small": lambda key: re.sub("%..", lambda match: match[0].lower(), quote(key, safe="")),
    "address, each character": lambda key: "".join(f"%{byte:02X}" for byte in key.encode()),
    "address, twice": lambda key: quote(quote(key, safe=""), safe=""),
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON, slashes": lambda key: json.dumps(key)[1:-1].replace("/", r"\/"),
    "JSON, each character": lambda key: "".join(f"\\u{ord(each):04x}" for each in key),
    "JSON, capitals": lambda key: "".join(f"\\u{ord(each):04X}" for each in key),
    "JSON in JSON": lambda key: json.dumps("".join(f"\\u{ord(each):04x}" for each in key))[1:-1],
    "program": lambda key: "".join(rf"\x{ord(each):02x}" for each in key),
    "program, braces": lambda key: "".join(rf"\u{{{ord(each):x}}}" for each in key),
    "HTML": html.escape,
    "HTML, numbers": lambda key: "".join(f"&#{ord(each)};" for each in key),
    "HTML, hexadecimal": lambda key: "".join(f"&#x{ord(each):X};" for each in key),
    "HTML, twice": lambda key: html.escape("".join(f"&#0{ord(each)};" for each in key)),
    "HTML, names": lambda key: key.replace("+", "&plus;").replace("/", "&sol;").replace("=", "&equals;"),
    "mixed": lambda key: f"\\u{ord(key[0]):04x}&#{ord(key[1])};%{ord(key[2]):02x}" + key[3:],
}


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("key", [KEY, "a/b+c=d&e'f\"g<h>i", "12345678-abcd-EF"])
def test_no_spelling_of_the_key_is_repeated(
    server: FakeBabelNet, cache: AnswerCache, monkeypatch: pytest.MonkeyPatch, escape: str, key: str
) -> None:
    monkeypatch.setenv("BABELNET_KEY", key)
    spelled = ESCAPES[escape](key)
    assert ApiKey(key).hide(f"what is {spelled}?") == "what is ***?"
    raw = spelled if escape.startswith("JSON,") else json.dumps(spelled)[1:-1]
    monkeypatch.setattr(
        fake.Handler, "do_GET", lambda handler: handler.answer(400, b'{"message": "<%s>"}' % raw.encode())
    )
    with pytest.raises(SembenchError, match=r"with 400 and said: <\*\*\*>"):
        BabelNetClient(cache).version()


def test_other_texts_stay_as_they_are() -> None:
    text = "a%20b \\u0041 &amp; &#65; \\n" + KEY[:-1] + " " + KEY[1:]
    assert ApiKey(KEY).hide(text) == text


def complain(server: FakeBabelNet) -> None:
    server.bodies["getVersion"] = json.dumps({"message": f"what is {quote_plus(KEY)}?"}).encode()


TROUBLES: dict[str, Callable[[FakeBabelNet], Any]] = {
    "refused": lambda server: setattr(server, "bad_key", True),
    "down": lambda server: setattr(server, "failures", [500] * 9),
    "moved": lambda server: setattr(server, "failures", [302]),
    "slow": lambda server: setattr(server, "slow", 0.3),
    "gone": lambda server: setattr(server, "gone", True),
    "page": lambda server: server.bodies.update(getVersion=b"<html>"),
    "echo": echo,
    "complaint": complain,
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_the_key_is_nowhere(
    server: FakeBabelNet,
    client: BabelNetClient,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    trouble: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    crawl(WORDS, client)
    assert "/v9/getSynset?" in caplog.text and "key=***" in caplog.text  # the HTTP library did log its addresses
    another = BabelNetClient(AnswerCache(tmp_path / "another"))
    TROUBLES[trouble](server)
    monkeypatch.setattr(babelnet, "TIMEOUT", (1, 0.1))
    if trouble == "gone":
        monkeypatch.setattr(another, "_url", "http://127.0.0.1:9")
    with pytest.raises(SembenchError) as caught:
        another.version()
    texts = [caplog.text, everything_said(caught.value), repr(client), repr(vars(client))]
    texts += [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    texts += [str(path) for path in tmp_path.rglob("*")]
    assert not [text for text in texts for spelling in spellings() if spelling in text]


def test_a_key_cannot_be_pickled(client: BabelNetClient) -> None:
    import pickle

    with pytest.raises(TypeError, match="a key is not written to files"):
        pickle.dumps(client._key)


# ------------------------------------------------------------------------------------------------- inventory


@pytest.fixture
def inventory(client: BabelNetClient) -> BabelNetInventory:
    """Senses of WORDS from the cache alone, with the edges that are known."""
    crawl(WORDS, client)
    for synset in fake.EDGES:
        client.ask("getOutgoingEdges", edges_params(synset))
    return BabelNetInventory(client.cache, lexfile_of)


def test_a_synset_is_read_as_documented(inventory: BabelNetInventory) -> None:
    everything: Inventory = inventory
    tune, net, town, florn = everything.synsets("FLORN", ["NOUN", "VERB"])
    assert florn == Synset(
        id=fake.FLORN,
        pos="NOUN",
        lemmas=("florn", "river florn"),
        glosses=(
            Gloss("any of several made-up beasts that whistle", "WN"),
            Gloss("A florn is a made-up beast of the river bank.", "WIKI"),
            Gloss("made-up beast", "WIKIDATA"),
            Gloss("a whistler of the bank", "WIKT"),
            Gloss("a beast from a test", "SOMEBODYS"),
        ),
        lexfile="noun.animal",
        domains={"BIOLOGY": 0.7},
        type="CONCEPT",
        wordnet="10000101n",
        key_concept=True,
    )
    assert net.lemmas == ("florn", "florn net") and net.wordnet is None and net.lexfile is None
    assert net.domains == {"FARMING_FISHING_AND_HUNTING": 0.25} and not net.key_concept
    assert town.type == "NAMED_ENTITY" and town.domains == {}
    assert tune.glosses == () and tune.lexfile == "noun.communication"
    assert (inventory.name, inventory.version) == ("babelnet", "V5_3")


def test_unknown_words_and_parts_of_speech(inventory: BabelNetInventory) -> None:
    assert inventory.synsets("florn", ["VERB"]) == []
    assert [one.id for one in inventory.synsets("mulp", ["VERB"])] == [fake.MULP]
    with pytest.raises(
        SembenchError, match=r"no answer to getSynsetIds\(lemma=warbly, .*\); run sembench babelnet crawl first"
    ):
        inventory.synsets("warbly", ["ADJ"])


def test_missing_keys_have_defaults(server: FakeBabelNet, client: BabelNetClient) -> None:
    server.bodies["getSynset"] = (
        b'{"mainSense": "x", "domains": null, "senses": [{"fullLemma": "Mulp_(verb)"}], "odd": 1}'
    )
    (mulp,) = BabelNetInventory(client, lexfile_of).synsets("mulp", ["VERB"])
    assert mulp == Synset(id=fake.MULP, pos="VERB", lemmas=("mulp",), glosses=())


def test_a_client_asks_for_what_is_missing_and_only_once(server: FakeBabelNet, client: BabelNetClient) -> None:
    for _ in range(2):
        live = BabelNetInventory(client, lexfile_of, source="WN")
        assert [one.id for one in live.synsets("florn", ["NOUN"])] == [fake.FLORN_TUNE, fake.FLORN]
    assert server.received == 4
    first, second = live.synsets("florn", ["NOUN"])
    assert live.related(second, first, "ancestor") is None  # edges are used where they are known, never asked for
    assert server.received == 4


def test_graph_tests(inventory: BabelNetInventory, client: BabelNetClient) -> None:
    crawl([("flornoid", "NOUN"), ("warbly", "ADJ"), ("mumly", "ADJ"), ("mumlyish", "ADJ")], client)
    one = {synset: inventory._synset(synset) for synset in fake.SYNSETS}
    expected = [
        (fake.FLORN, fake.FLORN_TUNE, "ancestor", True),
        (fake.FLORN, fake.CREATURE, "ancestor", True),  # two steps, through a circle
        (fake.CREATURE, fake.FLORN, "ancestor", False),
        (fake.FLORN, fake.FLORN_TOWN, "ancestor", False),  # only guessed by a program
        (fake.FLORN_NET, fake.FLORN, "ancestor", None),  # its edges are not known
        (fake.FLORN, fake.FLORN_NET, "part", True),
        (fake.FLORN, fake.FLORN_NET, "member", False),
        (fake.FLORN_NET, fake.FLORN, "part", None),
        (fake.WARBLY, fake.DULL, "antonym", True),
        (fake.WARBLY, fake.DULLISH, "antonym", True),  # through similar-to
        (fake.DULLISH, fake.WARBLY, "antonym", True),
        (fake.WARBLY, fake.CREATURE, "antonym", False),
        (fake.WARBLY, fake.MULP, "antonym", None),
        (fake.DULLISH, fake.DULL, "similar", True),
        (fake.WARBLY, fake.DULL, "similar", False),
        (fake.WARBLY, fake.MULP, "similar", None),
    ]
    for first, second, edge, answer in expected:
        low, high = one[first], one[second]
        assert low and high
        assert inventory.related(low, high, edge) is answer, (first, second, edge)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- crawl


def test_plan_crawl_plan(server: FakeBabelNet, client: BabelNetClient, cache: AnswerCache) -> None:
    before = plan(WORDS, cache)
    assert (before.words, before.complete, before.remaining, before.measured) == (4, 0, 5, False)
    assert before.estimated == 4 * FAN_OUT and "a guess before the first answers" in plan_text(before)
    report = crawl(WORDS, client)
    # The version, four words, and five synsets of "florn" with "river florn" among them, and one of "mulp".
    assert (report.stopped, report.done, report.spent, report.remaining) == ("complete", 4, 11, 0)
    assert crawl_text(report) == "all words are complete after 11 requests"
    again = crawl(WORDS, BabelNetClient(cache))
    assert (again.stopped, again.spent, server.received) == ("complete", 0, 11)
    more = plan([*WORDS, ("warbly", "ADJ")], cache)
    assert more.measured and more.fan_out == 1.5 and (more.remaining, more.expected) == (1, 3)
    assert "at least 1 requests remain" in plan_text(more) and "measured so far" in plan_text(more)


def test_a_crawl_stops_at_either_limit_and_goes_on(server: FakeBabelNet, cache: AnswerCache, clock: Clock) -> None:
    report = crawl(WORDS, BabelNetClient(cache, max_requests=3))
    assert (report.stopped, report.spent, report.done) == ("budget", 3, 0)
    assert report.remaining == 3 + 4  # three words, and four synsets of the first
    server.limit = 2 + 3
    report = crawl(WORDS, BabelNetClient(cache))
    assert (report.stopped, report.spent) == ("limit", 2) and "after 5 requests today" in report.message
    assert "stopped at the daily limit of the service after 2 requests" in crawl_text(report)
    assert crawl(WORDS, BabelNetClient(cache)).spent == 0
    server.limit = None
    clock.next_day()
    assert crawl(WORDS, BabelNetClient(cache)).stopped == "complete"
    assert set(server.counts.values()) == {1} and sum(server.counts.values()) == 11


def test_a_refused_key_ends_a_crawl(server: FakeBabelNet, client: BabelNetClient) -> None:
    server.bad_key = True
    with pytest.raises(KeyRejected):
        crawl(WORDS, client)
    assert server.received == 1


def test_a_crawl_says_how_far_it_is(server: FakeBabelNet, client: BabelNetClient, monkeypatch: Any) -> None:
    monkeypatch.setattr("sembench.core.progress.LOG_EVERY", 0.0)
    said: list[str] = []
    crawl(WORDS, client, say=said.append)
    assert said[0].startswith("0 of 4 words, 3 requests, ") and said[-1].startswith("4 of 4 words, 11 requests, ")


def test_600_words_at_100_a_day(monkeypatch: Any, tmp_path: Path, clock: Clock) -> None:
    monkeypatch.setattr(cache_module, "_to_disk", lambda _: None)  # the power stays on
    words: list[Any] = fake.words(600)
    cache = AnswerCache(tmp_path, now=clock)
    reports: list[CrawlReport] = []
    with fake.running(count=600) as server:
        monkeypatch.setenv("BABELNET_URL", server.url)
        server.limit = 100
        while not reports or (reports[-1].stopped == "limit" and len(reports) < 20):
            reports.append(crawl(words, BabelNetClient(cache)))
            server.new_day()
            clock.next_day()
    # The version, 600 words, and 150 synsets of four words each.
    assert [report.spent for report in reports] == [100] * 7 + [51]
    assert [report.stopped for report in reports] == ["limit"] * 7 + ["complete"]
    # A day: four words and their synset take five requests, and the version took one.
    assert [report.done for report in reports] == [79, 159, 239, 319, 399, 479, 559, 600]
    assert [report.remaining for report in reports] == [521, 441, 361, 281, 201, 121, 41, 0]
    assert sum(server.counts.values()) == len(server.counts) == 751
    assert list(cache.ledger.days().values()) == [100] * 7 + [51]
    # The same DSBATS-sn from the answers and from their export; the server is gone, so nothing is asked.
    nouns = [lemma for lemma, pos in words if pos == "NOUN"]
    pairs = [WordPair("E06", *two, 1) for two in zip(nouns, nouns[fake.SHARE :], strict=False)]
    export_dump(cache, tmp_path / "export.jsonl")
    senses = (
        BabelNetInventory(cache, lambda _: "noun.animal"),
        DumpInventory(tmp_path / "export.jsonl", lambda _: "noun.animal"),
    )
    options = BuildOptions(relations=("E06",), every_pos=False)
    first, second = (build_dsbats_sn(pairs, inventory, load_rules(), options) for inventory in senses)
    assert len(first.frame) > 20
    pd.testing.assert_frame_equal(first.frame, second.frame)
    pd.testing.assert_frame_equal(first.report, second.report)


CRAWLER = """
import sys
from pathlib import Path
from sembench.analogy.inventory.babelnet import BabelNetClient
from sembench.analogy.inventory.cache import AnswerCache
from sembench.analogy.inventory.crawl import crawl
from tests.unit.fake_babelnet import words
print(crawl(words(int(sys.argv[2])), BabelNetClient(AnswerCache(Path(sys.argv[1])))).stopped)
"""


def crawler(folder: Path, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CRAWLER, str(folder), str(count)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True)


def test_kill_9_at_any_moment(monkeypatch: Any, tmp_path: Path) -> None:
    chance, kills, count = random.Random(7), 3, 60
    cache = AnswerCache(tmp_path)
    with fake.running(count) as server:
        monkeypatch.setenv("BABELNET_URL", server.url)
        settled: dict[fake.Request, int] = {}
        for _ in range(kills):
            process = crawler(tmp_path, count)
            goal = server.received + chance.randint(1, 20)
            while server.received < goal:
                assert process.poll() is None
                time.sleep(0.001)
            time.sleep(chance.random() * 0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout and process.stdout.close()
            settled |= {request: server.counts[request] for request in stored(cache)}  # reads whole files only
        last = crawler(tmp_path, count)
        assert last.communicate(timeout=60)[0] == "complete\n"
        # Not a single answer that was stored when a process died is asked for again ...
        assert {request: server.counts[request] for request in settled} == settled and len(settled) > kills
        # ... and at most the request under way is.
        assert sum(server.counts.values()) - len(server.counts) <= kills
        assert len(server.counts) == 1 + 60 + 15
        # Spending is counted before it happens, so it is never shown too low.
        assert server.received <= cache.ledger.today <= server.received + kills


def test_parallel_crawls_share_the_work(monkeypatch: Any, tmp_path: Path) -> None:
    with fake.running(60) as server:
        monkeypatch.setenv("BABELNET_URL", server.url)
        reports = []
        threads = [
            threading.Thread(
                target=lambda: reports.append(crawl(fake.words(60), BabelNetClient(AnswerCache(tmp_path))))
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert [report.stopped for report in reports] == ["complete"] * 4
    assert sum(server.counts.values()) == len(server.counts) == sum(report.spent for report in reports) == 76


def test_the_fake_runs_on_its_own(cache: AnswerCache, monkeypatch: Any) -> None:
    command = [sys.executable, "-m", "tests.unit.fake_babelnet", "--words", "4", "--limit", "2"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        monkeypatch.setenv("BABELNET_URL", process.stdout.readline().strip())
        assert crawl(fake.words(2), BabelNetClient(cache)).stopped == "limit"
    finally:
        process.kill()
        process.communicate()
