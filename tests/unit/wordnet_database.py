"""A tiny invented database in WordNet's format, and the real one."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from sembench.analogy.inventory.wordnet import WordNetInventory
from sembench.analogy.inventory.wordnet_files import WORDNET_FILES, prepare_wordnet
from tests.packages import packaged

LEXNAMES = [
    "adj.all",
    "noun.Tops",
    "noun.animal",
    "noun.artifact",
    "noun.attribute",
    "noun.event",
    "noun.food",
    "noun.group",
    "noun.location",
    "noun.plant",
    "verb.communication",
]
FILES = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}


@dataclass
class Entry:
    """A synset to write; pointers are (symbol, key of the other entry)."""

    key: str
    pos: str
    lexfile: str
    lemmas: list[str]
    gloss: str
    pointers: list[tuple[str, str]] = field(default_factory=list)

    def line(self, offsets: dict[str, int], kinds: dict[str, str]) -> str:
        words = " ".join(f"{lemma} 0" for lemma in self.lemmas)
        pointers = " ".join(
            f"{symbol} {offsets[key]:08d} {kinds[key]} {'0101' if symbol == '!' else '0000'}"
            for symbol, key in self.pointers
        )
        frames = " 01 + 02 00" if self.pos == "v" else ""
        head = f"{offsets[self.key]:08d} {LEXNAMES.index(self.lexfile):02d} {self.pos} {len(self.lemmas):02x} {words}"
        return f"{head} {len(self.pointers):03d}{' ' * bool(pointers)}{pointers}{frames} | {self.gloss}  \n"


ENTRIES = [
    Entry("thing", "n", "noun.Tops", ["thing"], "that which is perceived to be"),
    Entry("place", "n", "noun.location", ["place"], "a spot on the map", [("@", "thing")]),
    Entry("beast", "n", "noun.animal", ["beast"], "a living being that moves", [("@", "thing")]),
    Entry(
        "glim",
        "n",
        "noun.animal",
        ["glim", "Marsh_glim"],
        'a small beast of the marsh; sleeps all day; "a glim hid"',
        [("@", "beast")],
    ),
    Entry(
        "lamp",
        "n",
        "noun.artifact",
        ["glim"],
        '(sailing) a lamp hung at the bow: "light the glim"',
        [("@", "thing"), ("%p", "wick"), ("%s", "wax")],
    ),
    Entry("wick", "n", "noun.artifact", ["glim-wick"], "a thread that burns"),
    Entry("wax", "n", "noun.artifact", ["wax"], "stuff that feeds a flame"),
    Entry("herd", "n", "noun.group", ["glimmery"], "a herd of glims", [("%m", "glim")]),
    Entry("leaf", "n", "noun.plant", ["leaf"], "green part of a plant"),
    Entry("ombra", "n", "noun.location", ["Port_Ombra"], "the harbour town of Velia", [("@i", "place")]),
    Entry("call", "v", "verb.communication", ["glim"], "call like a glim"),
    Entry(
        "bright",
        "a",
        "adj.all",
        ["bright"],
        'giving much light; "so bright"- A. Poet',
        [("!", "dull"), ("&", "radiant")],
    ),
    Entry("radiant", "s", "adj.all", ["radiant"], "sending out light all around", [("&", "bright")]),
    Entry("dull", "a", "adj.all", ["dull"], "giving little light", [("!", "bright"), ("&", "dim")]),
    Entry("dim", "s", "adj.all", ["dim"], "hardly lit at all", [("&", "dull")]),
]


def write_database(folder: Path, entries: list[Entry], line_end: str = "\n") -> dict[str, str]:
    """Write the database files and return key -> id as ``wn:00000042n``."""
    kinds = {entry.key: entry.pos for entry in entries}
    header, offsets, places = "  1 An invented database.\n", {}, defaultdict(int)
    for entry in entries:
        place = places[FILES[entry.pos]] or len(header)
        offsets[entry.key] = place
        places[FILES[entry.pos]] = place + len(entry.line({e.key: 0 for e in entries}, kinds))
    texts = {name: header for name in WORDNET_FILES if name.startswith(("data", "index."))} | {"index.sense": ""}
    senses: dict[tuple[str, str], list[int]] = defaultdict(list)
    for entry in entries:
        texts[f"data.{FILES[entry.pos]}"] += entry.line(offsets, kinds)
        for lemma in entry.lemmas:
            senses[FILES[entry.pos], lemma.lower()].append(offsets[entry.key])
    for (name, lemma), found in sorted(senses.items()):
        letter = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}[name]
        places_ = " ".join(f"{offset:08d}" for offset in found)
        texts[f"index.{name}"] += f"{lemma} {letter} {len(found)} 0 {len(found)} 0 {places_}  \n"
    texts |= {f"{name}.exc": "" for name in ("verb", "adj", "adv")} | {"noun.exc": "leaves leaf\n", "cntlist.rev": ""}
    texts["lexnames"] = "".join(f"{i:02d}\t{name}\t1\n" for i, name in enumerate(LEXNAMES))
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_bytes(text.replace("\n", line_end).encode("ascii"))
    return {entry.key: f"wn:{offsets[entry.key]:08d}{entry.pos.replace('s', 'a')}" for entry in entries}


@functools.cache
def real_wordnet() -> Path:
    """Return the folder of WordNet 3.0, prepared once a test run."""
    target = Path(tempfile.mkdtemp(prefix="wordnet"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    return prepare_wordnet(packaged("wordnet"), target)


@functools.cache
def real_inventory() -> WordNetInventory:
    """Return WordNet 3.0 as an inventory, read once a test run."""
    return WordNetInventory(real_wordnet())
