"""A small BabelNet on this machine: the documented GET methods over words and sentences that are all made up here.

Run ``python -m tests.unit.fake_babelnet --words 100`` in the project's folder to have one under the address that it prints.
"""

from __future__ import annotations

import argparse
import gzip
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sembench.analogy.inventory.base import Pos

KEY = "f4k3-key/for+tests&only=1"  # its spelling in an address is another one
Request = tuple[str, tuple[tuple[str, str], ...]]

WRONG = "Wrong parameters."
NOT_FOUND = "BabelSynset not found."
REFUSED = "Your key is not valid or the daily requests limit has been reached. Please visit http://babelnet.org."
TOO_MANY_KEYS = "The maximum keys number per IP has been reached."

POS: dict[str, Pos] = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}
SHARE = 4  # words of a regular synset
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu")


def word(number: int) -> str:
    """Return the made-up word of a number, a syllable for a digit."""
    return "z" + "".join(SYLLABLES[int(digit)] for digit in f"{number:03d}")


def word_pos(number: int) -> Pos:
    """Neighbours share a synset and so a part of speech."""
    return POS[regular_id(number)[-1]]


def words(count: int) -> list[tuple[str, Pos]]:
    return [(word(number), word_pos(number)) for number in range(count)]


# ------------------------------------------------------------------------------------------------- data


def sense(lemma: str, source: str, synset: str, language: str = "EN", offset: str | None = None) -> dict[str, Any]:
    wordnet = {"wordNetSenseNumber": 1, "wordNetOffset": offset, "wordNetSynsetPosition": 1} if offset else {}
    return {
        "type": "WordNetSense" if offset else "BabelSense",
        "properties": {
            "fullLemma": lemma,
            "simpleLemma": lemma.split("_(", maxsplit=1)[0],
            "lemma": {"lemma": lemma, "type": "HIGH_QUALITY"},
            "source": source,
            "senseKey": "1",
            "frequency": 0,
            "language": language,
            "pos": POS[synset[-1]],
            "synsetID": {"id": synset, "pos": POS[synset[-1]], "source": "BABELNET"},
            "translationInfo": "",
            "pronunciations": {"audios": [], "transcriptions": []},
            "bKeySense": False,
            "idSense": 1,
            "tags": {},
            **wordnet,
        },
    }


def gloss(text: str, source: str, language: str = "EN") -> dict[str, Any]:
    return {"source": source, "sourceSense": 7, "language": language, "gloss": text, "tokens": []}


def synset(
    senses: list[dict[str, Any]],
    glosses: list[dict[str, Any]],
    offset: str | None = None,
    domains: dict[str, float] | None = None,
    kind: str = "CONCEPT",
    key: bool = False,
) -> dict[str, Any]:
    """Return an object as getSynset gives it: the entry of Open English WordNet stands first."""
    pos = POS[offset[-1]] if offset else None
    entries = [("OEWN", "oewn:09" + (offset or "")[2:]), ("WN_30", f"wn:{offset}")] if offset else []
    return {
        "senses": senses,
        "wnOffsets": [
            {"versionMapping": {}, "version": version, "id": one, "pos": pos, "source": version[:4].rstrip("_")}
            for version, one in entries
        ],
        "glosses": glosses,
        "examples": [
            {"source": "WN", "sourceSense": 7, "language": "EN", "example": "a made-up example", "tokens": []}
        ],
        "images": [],
        "synsetType": kind,
        "categories": [{"category": "Made-up_things", "language": "EN"}],
        "translations": {},
        "domains": domains or {},
        "lnToCompound": {},
        "lnToOtherForm": {},
        "filterLangs": ["EN"],
        "bkeyConcepts": key,
        "tags": [],
        "synsetDegree": 3,
    }


FLORN = "bn:00000101n"  # the animal, last of four
FLORN_NET, FLORN_TOWN, FLORN_TUNE = "bn:00000102n", "bn:00000103n", "bn:00000104n"
CREATURE, GHOST = "bn:00000105n", "bn:00000199n"
WARBLY, DULL, DULLISH = "bn:00000201a", "bn:00000202a", "bn:00000203a"
MULP = "bn:00000301v"

SYNSETS: dict[str, dict[str, Any]] = {
    FLORN: synset(
        [
            sense("Florn", "WIKI", FLORN),
            sense("florn", "OEWN", FLORN, offset="90000101n"),
            sense("florn", "WN", FLORN, offset="10000101n"),
            sense("river_florn", "WN", FLORN, offset="10000101n"),
            sense("Flornling", "WIKIRED", FLORN),
            sense("Florne", "WIKI", FLORN, "DE"),
        ],
        [
            gloss("Flornen sind erfundene Tiere.", "WIKI", "DE"),
            gloss("A florn is a made-up beast of the river bank.", "WIKI"),
            gloss("made-up beast", "WIKIDATA"),
            gloss("any of several made-up beasts that whistle", "OEWN"),
            gloss("any of several made-up beasts that whistle", "WN"),
            gloss("a beast from a test", "SOMEBODYS"),
            gloss("a whistler of the bank", "WIKT"),
        ],
        "10000101n",
        {"ANIMALS": 0.4, "BIOLOGY": 0.7},
        key=True,
    ),
    FLORN_NET: synset(
        [sense("florn_(fishing_device)", "WIKI", FLORN_NET), sense("Florn_net", "WIKIDATA", FLORN_NET)],
        [gloss("A net that nobody ever knotted.", "WIKI")],
        domains={"FISHING_AND_HUNTING": 0.25},
    ),
    FLORN_TOWN: synset(
        [sense("Florn_(town)", "WIKI", FLORN_TOWN)], [gloss("Town on no map.", "WIKIDATA")], kind="NAMED_ENTITY"
    ),
    FLORN_TUNE: synset([sense("florn", "WN", FLORN_TUNE, offset="10000104n")], [], "10000104n"),
    CREATURE: synset(
        [sense("flornoid", "WN", CREATURE, offset="10000105n")], [gloss("a made-up being", "WN")], "10000105n"
    ),
    WARBLY: synset(
        [sense("warbly", "WN", WARBLY, offset="30000201a")], [gloss("given to whistling", "WN")], "30000201a"
    ),
    DULL: synset([sense("mumly", "WN", DULL, offset="30000202a")], [gloss("never whistling", "WN")], "30000202a"),
    DULLISH: synset(
        [sense("mumlyish", "WN", DULLISH, offset="30000203a")], [gloss("seldom whistling", "WN")], "30000203a"
    ),
    MULP: synset([sense("mulp", "WN", MULP, offset="20000301v")], [gloss("whistle backwards", "WN")], "20000301v"),
}
INDEX = {
    ("florn", "NOUN"): [FLORN_TUNE, FLORN_NET, FLORN_TOWN, FLORN, GHOST],
    ("river florn", "NOUN"): [FLORN],
    ("flornoid", "NOUN"): [CREATURE],
    ("florn", "VERB"): [],
    ("mulp", "VERB"): [MULP],
    ("warbly", "ADJ"): [WARBLY],
    ("mumly", "ADJ"): [DULL],
    ("mumlyish", "ADJ"): [DULLISH],
}


def edge(symbol: str, group: str, target: str, automatic: bool = False) -> dict[str, Any]:
    return {
        "language": "EN",
        "pointer": {
            "fSymbol": symbol,
            "name": group.title(),
            "shortName": group.lower()[:4],
            "relationGroup": group,
            "isAutomatic": automatic,
        },
        "target": target,
        "weight": 0.0,
        "normalizedWeight": 0.0,
    }


EDGES = {
    FLORN: [
        edge("r", "OTHER", FLORN_NET),
        edge("@", "HYPERNYM", FLORN_TUNE),
        edge("@w", "HYPERNYM", FLORN_TOWN, automatic=True),
        edge("%p", "MERONYM", FLORN_NET),
    ],
    FLORN_TUNE: [edge("@i", "HYPERNYM", CREATURE), edge("@", "HYPERNYM", FLORN)],
    CREATURE: [edge("~", "HYPONYM", FLORN_TUNE)],
    WARBLY: [edge("!", "OTHER", DULL)],
    DULL: [edge("!", "OTHER", WARBLY), edge("&", "OTHER", DULLISH)],
    DULLISH: [edge("&", "OTHER", DULL)],
}


class Data:
    """The hand-written senses and, for any number of words, regular ones."""

    def __init__(self, count: int) -> None:
        self.numbers = {(word(number), word_pos(number)): number for number in range(count)}
        self.count = count

    def ids(self, lemma: str, pos: str | None, source: str | None) -> list[str]:
        lemma = lemma.lower().replace("_", " ")
        found = [one for tag in POS.values() if pos in (None, tag) for one in self._ids(lemma, tag)]
        return [one for one in found if not source or source in self._sources(one)]

    def _ids(self, lemma: str, pos: Pos) -> list[str]:
        number = self.numbers.get((lemma, pos))
        return INDEX.get((lemma, pos), []) if number is None else [regular_id(number)]

    def _sources(self, one: str) -> set[str]:
        return {item["properties"]["source"] for item in (self.synset(one) or {"senses": []})["senses"]}

    def synset(self, one: str) -> dict[str, Any] | None:
        if one.startswith("wn:"):
            one = next((known for known, body in SYNSETS.items() if offset_of(body) == one), "")
        if one in SYNSETS:
            return SYNSETS[one]
        number = int(one[3:-1]) - 10_000_000 if one[3:-1].isdecimal() else -1
        if not 0 <= number * SHARE < self.count or one != regular_id(number * SHARE):
            return None
        lemmas = [word(number * SHARE + index) for index in range(SHARE)]
        text = f"what every {lemmas[0]} was made up for"
        return synset([sense(lemma, "WN", one, offset=one[3:]) for lemma in lemmas], [gloss(text, "WN")], one[3:])


def regular_id(number: int) -> str:
    return f"bn:{10_000_000 + number // SHARE}{'nvar'[number // SHARE % 4]}"


def offset_of(body: dict[str, Any]) -> str | None:
    return next((item["id"] for item in body["wnOffsets"] if item["version"] == "WN_30"), None)


# ------------------------------------------------------------------------------------------------- server


class FakeBabelNet(ThreadingHTTPServer):
    """The service with its moods.

    Attributes:
        limit: requests a day; `new_day` begins the next one.
        bad_key: refuse every key.
        too_many_keys: refuse with the message on keys per address.
        slow: seconds before every answer.
        failures: statuses of the next answers, for instance ``[500]``.
        message_with_200: send messages with status 200.
        bodies: method to raw answer, in place of the right one.
        counts: requests by method and sorted parameters without the key, refused ones and failures left out.
        received: number of all requests.
    """

    daemon_threads = True

    def __init__(self, count: int = 0, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.data = Data(count)
        self.version = "V5_3"
        self.limit: int | None = None
        self.bad_key = self.too_many_keys = self.message_with_200 = False
        self.slow = 0.0
        self.failures: list[int] = []
        self.bodies: dict[str, bytes] = {}
        self.counts: Counter[Request] = Counter()
        self.received = 0
        self.headers: dict[str, str] = {}
        self.more_headers: dict[str, str] = {}
        self._today = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that are gone; some tests kill theirs."""

    def new_day(self) -> None:
        self._today = 0

    def admit(self, key: str | None) -> tuple[int, str] | None:
        """Return status and message of a refusal."""
        with self._lock:
            self.received += 1
            if self.failures:
                return self.failures.pop(0), "out of order"
            if key is None:
                return 400, WRONG
            if self.too_many_keys:
                return 403, TOO_MANY_KEYS
            if self.bad_key or key != KEY or (self.limit is not None and self._today >= self.limit):
                return 403, REFUSED
            self._today += 1
        return None

    def note(self, request: Request) -> None:
        with self._lock:
            self.counts[request] += 1


class Handler(BaseHTTPRequestHandler):
    server: FakeBabelNet
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        key = next((value for name, value in pairs if name == "key"), None)
        params = sorted(pair for pair in pairs if pair[0] != "key")
        method = parts.path.removeprefix("/v9/")
        self.server.headers = dict(self.headers)
        time.sleep(self.server.slow)
        if refusal := self.server.admit(key):
            return self.say(*refusal)
        self.server.note((method, tuple(params)))
        if method in self.server.bodies:
            return self.answer(200, self.server.bodies[method])
        if method not in METHODS:
            return self.say(404, "no such method")
        return self.reply(method, dict(params), [value for name, value in params if name == "targetLang"])

    def reply(self, method: str, params: dict[str, str], languages: list[str]) -> None:
        required = METHODS[method]
        if not all(params.get(name) for name in required) or len(languages) > 3 or params.get("pos") == "ADJECTIVE":
            return self.say(400, WRONG)
        body = getattr(self, method)(params)
        if body is None:
            return self.say(400, NOT_FOUND)
        return self.answer(200, json.dumps(body).encode())

    def getVersion(self, params: dict[str, str]) -> Any:
        return {"version": self.server.version}

    def getSynsetIds(self, params: dict[str, str]) -> Any:
        found = self.server.data.ids(params["lemma"], params.get("pos"), params.get("source"))
        return [{"id": one, "pos": POS[one[-1]], "source": "BABELNET"} for one in found]

    def getSynset(self, params: dict[str, str]) -> Any:
        return self.server.data.synset(params["id"])

    def getSenses(self, params: dict[str, str]) -> Any:
        found = self.server.data.ids(params["lemma"], params.get("pos"), params.get("source"))
        bodies = [body for one in found if (body := self.server.data.synset(one))]
        return [item for body in bodies for item in body["senses"]]

    def getSynsetIdsFromResourceID(self, params: dict[str, str]) -> Any:
        found = [one for one, body in SYNSETS.items() if offset_of(body) == params["id"] and params["source"] == "WN"]
        return [{"id": one, "pos": POS[one[-1]], "source": "BABELNET"} for one in found]

    def getOutgoingEdges(self, params: dict[str, str]) -> Any:
        return EDGES.get(params["id"], [] if self.server.data.synset(params["id"]) else None)

    def say(self, status: int, message: str) -> None:
        self.answer(200 if self.server.message_with_200 else status, json.dumps({"message": message}).encode())

    def answer(self, status: int, body: bytes) -> None:
        packed = "gzip" in self.headers.get("Accept-Encoding", "")
        body = gzip.compress(body, 1) if packed else body
        head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Length: {len(body)}"]
        head += ["Content-Type: application/json; charset=utf-8", *(["Content-Encoding: gzip"] if packed else [])]
        head += [f"{name}: {value}" for name, value in self.server.more_headers.items()]
        self.wfile.write("\r\n".join([*head, "", ""]).encode() + body)


METHODS = {
    "getVersion": (),
    "getSynsetIds": ("lemma", "searchLang"),
    "getSynset": ("id",),
    "getSenses": ("lemma", "searchLang"),
    "getSynsetIdsFromResourceID": ("id", "source"),
    "getOutgoingEdges": ("id",),
}


@contextmanager
def running(count: int = 0) -> Iterator[FakeBabelNet]:
    """Yield a server in a thread of this process."""
    server = FakeBabelNet(count)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--words", type=int, default=0)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--slow", type=float, default=0.0)
    arguments = parser.parse_args()
    server = FakeBabelNet(arguments.words, arguments.port)
    server.limit, server.slow = arguments.limit, arguments.slow
    print(server.url, flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    main()
