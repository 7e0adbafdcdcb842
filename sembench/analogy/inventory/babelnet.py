"""BabelNet over its documented HTTP interface (https://babelnet.org/guide), and as a sense inventory.

The service answers a limited number of requests a day, so every answer goes into `AnswerCache` and is never asked for
again. The key comes from the environment alone and stays out of answers, files, logs, errors and `repr`.
"""

from __future__ import annotations

import contextlib
import html.entities
import ipaddress
import json
import logging
import os
import re
from collections.abc import Iterator
from typing import Any, NoReturn
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from sembench.analogy.inventory.babelnet_answers import (
    BabelNetSenses,
    Json,
    LexfileOf,
    Pointer,
    check_shape,
    edges_params,
    has_senses,
    ids_of,
    ids_params,
    pointers_of,
    spelled_out,
    stored_version,
    synset_of,
    synset_params,
    version_of,
)
from sembench.analogy.inventory.base import Pos, Synset
from sembench.analogy.inventory.cache import Answer, AnswerCache, Params
from sembench.core.errors import PassingError, SembenchError

URL = "https://babelnet.io"
# What getVersion says under each version of the API, so that nobody is served by an old one unawares (babelnetpy#6).
VERSIONS = {"v5": "V4_0", "v6": "V5_0", "v7": "V5_1", "v8": "V5_2", "v9": "V5_3"}
TRIES = 4
WAIT = wait_exponential(multiplier=1, max=30)
TIMEOUT = (10, 60)  # seconds until connected, and between two pieces

_log = logging.getLogger(__name__)


class KeyRejected(SembenchError):  # noqa: N818
    """The first request of the day was refused, so the key itself is doubtful."""


class LimitReached(SembenchError):  # noqa: N818
    """The service refuses to go on after it had answered: come back another day."""


class BudgetSpent(SembenchError):  # noqa: N818
    """The own limit on requests is reached; nothing was sent."""


# ------------------------------------------------------------------------------------------------- the key


class ApiKey(AuthBase):
    """The key of an account, added to an address at the last moment.

    As a parameter it would lie in local variables, which some tracebacks print.
    """

    def __init__(self, value: str) -> None:
        self._spelled = re.compile("".join(map(_spellings, value)), re.IGNORECASE)
        self._value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the key to a request."""
        request.prepare_url(request.url, {"key": self._value})
        return request

    def __repr__(self) -> str:
        return "ApiKey(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not written to files")

    def hide(self, text: str) -> str:
        """Return a text with stars for the key, however its characters are escaped."""
        return self._spelled.sub("***", text)

    @classmethod
    def from_environment(cls) -> ApiKey:
        """Return the key in BABELNET_KEY.

        Raises:
            SembenchError: There is none, or it cannot be one.
        """
        problem = _problem_with(_key_text())
        if problem:
            raise SembenchError(f"BABELNET_KEY {problem}")
        return cls(_key_text())


def _spellings(character: str) -> str:
    """Return a pattern for a character as it is and as addresses, JSON, programs and HTML escape it, once or again."""
    number = ord(character)
    in_address = "".join(f"%(?:25)*{byte:02x}" for byte in character.encode())
    in_html = "|".join([f"#0*{number}", f"#x0*{number:x}", *sorted(_HTML_NAMES.get(character, ()))])
    in_json = f"u0*{number:04x}|u\\{{0*{number:x}\\}}|x{number:02x}"
    return rf"(?:\\*{re.escape(character)}|{in_address}|&(?:amp;)*(?:{in_html});|\\+(?:{in_json}))"


_HTML_NAMES: dict[str, set[str]] = {}
for _name, _text in html.entities.html5.items():
    _HTML_NAMES.setdefault(_text, set()).add(_name.rstrip(";"))


def _key_text() -> str:
    return os.environ.get("BABELNET_KEY", "").strip()


def _problem_with(value: str) -> str:
    if not value:
        return "is not set; export the key of your babelnet.org account under that name"
    # Hiding a very short key would also hide innocent text.
    if len(value) < 8 or not value.isprintable() or " " in value:
        return "does not look like a key; copy it from your babelnet.org account again"
    return ""


class _Hidden(logging.Filter):
    """Hides the key in what the HTTP library logs: it prints whole addresses at level DEBUG."""

    def __init__(self, key: ApiKey) -> None:
        super().__init__()
        self._key = key

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._key.hide(record.getMessage()), ()
        return True


@contextlib.contextmanager
def _hidden_in_logs(key: ApiKey) -> Iterator[None]:
    logger, hidden = logging.getLogger("urllib3.connectionpool"), _Hidden(key)
    logger.addFilter(hidden)
    try:
        yield
    finally:
        logger.removeFilter(hidden)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def service_url() -> str:
    """Return the address of the service: BABELNET_URL, or the official one.

    Raises:
        SembenchError: The key would travel unencrypted, or it is not a plain address.
    """
    url = os.environ.get("BABELNET_URL", "").strip().rstrip("/") or URL
    problem = "is not an address such as https://babelnet.io"
    try:
        parts = urlsplit(url)
        fits = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise SembenchError(f"BABELNET_URL {problem}") from None
    if not fits or parts.query or parts.fragment or parts.username or parts.password:
        raise SembenchError(f"BABELNET_URL {problem}")
    if parts.scheme == "https" or (parts.scheme == "http" and _loopback(parts.hostname or "")):
        return url
    raise SembenchError(f"BABELNET_URL {url} would send your key unencrypted; use https (http only on this machine)")


# ------------------------------------------------------------------------------------------------- client


class BabelNetClient:
    """Asks BabelNet what the cache does not know yet.

    Attributes:
        cache: where answers are looked up and stored.
        spent: requests sent by this client, further tries included, for each may cost a coin.
    """

    def __init__(self, cache: AnswerCache, *, max_requests: int | None = None) -> None:
        """Read BABELNET_KEY and, if set, BABELNET_URL; nothing is sent yet.

        Args:
            cache: where answers are looked up and stored.
            max_requests: most requests of this client.

        Raises:
            SembenchError: The key is missing, or the address is not allowed.
        """
        self.cache = cache
        self.spent = 0
        self._max_requests = max_requests
        self._url = service_url()
        self._key = ApiKey.from_environment()
        self._session = requests.Session()
        self._session.headers.update({"Accept-Encoding": "gzip", "Accept": "application/json"})
        # A proxy from the environment would otherwise be handed the key in clear.
        self._session.trust_env = self._url.startswith("https:")

    def __repr__(self) -> str:
        return f"BabelNetClient({self._url}/{self.cache.api}, spent={self.spent})"

    def version(self) -> str:
        """Return BabelNet's version such as ``V5_3``; asked once, then kept with the answers.

        Raises:
            SembenchError: It is not the one that belongs to this version of the API.
        """
        version = version_of(self.ask("getVersion", {}).body, "BabelNet's answer to getVersion()")
        expected = VERSIONS.get(self.cache.api, version)
        if version != expected:
            raise SembenchError(
                f"BabelNet says version {version} where API {self.cache.api} had {expected}; "
                "set the API version that belongs to it and use another cache folder"
            )
        return version

    def synset_ids(self, lemma: str, pos: Pos, source: str | None = None) -> list[str]:
        """Return the ids of a word's synsets in BabelNet's order, which is not by frequency."""
        answer = self.ask("getSynsetIds", ids_params(lemma, pos, source))
        return ids_of(answer.body, f"BabelNet's answer about '{lemma}'") if answer.found else []

    def synset(self, synset: str) -> Json | None:
        """Return the object of getSynset, or None for an id that does not exist."""
        answer = self.ask("getSynset", synset_params(synset))
        return answer.body if answer.found else None

    def ask(self, method: str, params: Params) -> Answer:
        """Return the answer to a request, from the cache if it was ever asked, else from the service.

        Two processes with one cache folder never ask the same: the second waits and finds the answer of the first.

        Raises:
            BudgetSpent: An own limit allows no further request.
            KeyRejected: The service refused at once and nothing was spent today.
            LimitReached: The service refused after it had answered today.
            PassingError: The service failed several times in a row.
            SembenchError: The answer is a complaint or makes no sense.
        """
        if answer := self.cache.get(method, params):
            return answer
        with self.cache.lock:
            return self.cache.get(method, params) or self._fetch(method, params)

    def _fetch(self, method: str, params: Params) -> Answer:
        what = spelled_out(method, params)
        untouched = self.spent == 0 and self.cache.ledger.today == 0
        retrying = Retrying(
            stop=stop_after_attempt(TRIES), wait=WAIT, retry=retry_if_exception_type(PassingError), reraise=True
        )
        response = retrying(self._send, method, params)
        body = self._parsed(response, what)
        message = _message(body)
        if response.status_code in (403, 429) or (message and _REFUSAL.search(message)):
            # Refused requests cost nothing.
            self.spent -= 1
            self.cache.ledger.take_back()
            raise self._too_many(response) if response.status_code == 429 else self._refusal(message, untouched)
        missing = bool(message and _NOT_FOUND.search(message)) and response.status_code in (200, 400)
        if not missing and (message is not None or response.status_code != 200):
            said = (message or "nothing")[:200]
            raise SembenchError(f"BabelNet answered {what} with {response.status_code} and said: {said}")
        if not missing:
            check_shape(method, body, f"BabelNet's answer to {what}")
        _log.debug("asked %s", what)
        return self.cache.put(method, params, response.status_code, body)

    def _send(self, method: str, params: Params) -> requests.Response:
        self._check_budget()
        self.spent += 1
        self.cache.ledger.add()
        try:
            with _hidden_in_logs(self._key):
                response = self._session.get(
                    f"{self._url}/{self.cache.api}/{method}",
                    params=params,
                    auth=self._key,
                    timeout=TIMEOUT,
                    # Wherever a redirection leads, it is no place for the key.
                    allow_redirects=False,
                )
            problem, passing = f"answered {response.status_code}", response.status_code >= 500
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            response, problem, passing = None, f"cannot be reached ({type(error).__name__})", True
        except (requests.RequestException, ValueError) as error:
            response, problem, passing = None, f"cannot be used ({type(error).__name__})", False
        # Raised out here, for an error raised above would remember the library's error, whose text holds the key.
        if passing:
            raise PassingError(f"{self._url} {problem} for {method}; what was answered is kept, try again later")
        if response is None:
            raise SembenchError(f"{self._url} {problem} for {method}; check BABELNET_URL")
        return response

    def _check_budget(self) -> None:
        if self._max_requests is not None and self.spent >= self._max_requests:
            raise BudgetSpent(f"the {self._max_requests} requests of this run are spent; run it again to go on")

    def _parsed(self, response: requests.Response, what: str) -> Any:
        body, known = None, True
        try:
            # A service that repeats the key would bring it into files and errors.
            body = json.loads(self._key.hide(response.content.decode("utf-8")))
            # A half of a surrogate pair is valid JSON and no text: it could not be kept.
            json.dumps(body, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            # A refusal or a complaint of a gateway may be a page; its status says enough.
            known = not response.ok
        if not known:
            raise SembenchError(f"BabelNet's answer to {what} is not JSON")
        return body

    def _too_many(self, response: requests.Response) -> LimitReached:
        after = response.headers.get("Retry-After", "")
        when = f"in {after} seconds" if after.isdecimal() and len(after) < 7 else "later or tomorrow"
        return LimitReached(
            f"BabelNet answers 429, too many requests, after {self.cache.ledger.today} requests today; what was "
            f"answered is kept, go on {when}"
        )

    def _refusal(self, message: str | None, untouched: bool) -> SembenchError:
        said = (message or "nothing")[:200]
        if untouched:
            return KeyRejected(
                "BabelNet refused the first request of today: the key in BABELNET_KEY is not valid, or its requests "
                f"were spent elsewhere, or yesterday's limit still holds there (it said: {said})"
            )
        today = self.cache.ledger.today
        return LimitReached(
            f"BabelNet refuses to go on after {today} requests today: the daily limit is reached, or the key in "
            f"BABELNET_KEY was changed to one that is not valid; go on tomorrow (it said: {said})"
        )


# Bad keys and spent limits share one message; both stop a run.
_REFUSAL = re.compile(r"key is not valid|requests limit|maximum keys", re.IGNORECASE)
_NOT_FOUND = re.compile(r"synset not found", re.IGNORECASE)


def _message(body: Any) -> str | None:
    """Return the message of an answer that is none, whatever its status."""
    return " ".join(str(body["message"]).split()) if isinstance(body, dict) and "message" in body else None


# ------------------------------------------------------------------------------------------------- inventory


class BabelNetInventory(BabelNetSenses):
    """Senses from the answers of the service: from a cache alone, or with a client that asks for what is missing."""

    def __init__(
        self,
        answers: AnswerCache | BabelNetClient,
        lexfile_of: LexfileOf | None = None,
        *,
        source: str | None = None,
    ) -> None:
        """Look senses up.

        Args:
            answers: a cache is read and nothing more; a client asks for what its cache lacks, the version first.
            lexfile_of: gives the lexicographer file of an offset in WordNet 3.0 such as ``02444819n``.
            source: only senses of this resource, as given when the words were fetched.

        Raises:
            SembenchError: The version of BabelNet is not the expected one, or any error of the client.
        """
        self._client = answers if isinstance(answers, BabelNetClient) else None
        self._cache = answers.cache if isinstance(answers, BabelNetClient) else answers
        self._lexfile_of = lexfile_of
        self._source = source
        self._seen: dict[str, Synset | None] = {}
        self._edges: dict[str, list[Pointer]] = {}
        self.version = self._client.version() if self._client else stored_version(self._cache)

    def _answer(self, method: str, params: Params) -> Answer:
        answer = self._client.ask(method, params) if self._client else self._cache.get(method, params)
        if answer is None:
            raise SembenchError(
                f"{self._cache.folder} has no answer to {spelled_out(method, params)}; "
                "run sembench babelnet crawl first"
            )
        return answer

    def _ids(self, lemma: str, pos: Pos) -> list[str]:
        params = ids_params(lemma, pos, self._source)
        answer = self._answer("getSynsetIds", params)
        what = f"the stored answer to {spelled_out('getSynsetIds', params)}"
        return ids_of(answer.body, what) if answer.found else []

    def _synset(self, synset: str) -> Synset | None:
        if synset not in self._seen:
            params = synset_params(synset)
            answer = self._answer("getSynset", params)
            what = f"the stored answer to {spelled_out('getSynset', params)}"
            if answer.found and not has_senses(answer.body):
                path = self._cache.path("getSynset", params)
                raise SembenchError(f"{path} holds no sense; delete it, and the next crawl asks for it again")
            self._seen[synset] = synset_of(synset, answer.body, self._lexfile_of, what) if answer.found else None
        return self._seen[synset]

    def _pointers(self, synset: str) -> list[Pointer] | None:
        if synset not in self._edges:
            # A graph is used where it is known; nothing asks for it, since that doubles the cost of a crawl.
            answer = self._cache.get("getOutgoingEdges", edges_params(synset))
            if answer is None:
                return None
            what = f"the stored edges of {synset}"
            self._edges[synset] = pointers_of(answer.body, what) if answer.found else []
        return self._edges[synset]
