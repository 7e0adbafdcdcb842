"""The filter's rules as data: ``registry/relations.yaml``, and the options of the data sets made with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from sembench.analogy.bats import RELATION_IDS, SEMANTIC
from sembench.analogy.inventory.base import Edge, Pos, SynsetType
from sembench.core.errors import SembenchError, unknown
from sembench.core.schema import Strict, parse
from sembench.registry.load import project_root, read_yaml

# WordNet's lexicographer files (lexnames(5WN)).
LEXFILES = tuple(
    f"{pos}.{name}"
    for pos, names in {
        "noun": "Tops act animal artifact attribute body cognition communication event feeling food group location "
        "motive object person phenomenon plant possession process quantity relation shape state substance time",
        "verb": "body change cognition communication competition consumption contact creation emotion motion "
        "perception possession social stative weather",
        "adj": "all pert ppl",
        "adv": "all",
    }.items()
    for name in names.split()
)
# BabelDomains as of BabelNet 5; an inventory maps older names to these.
DOMAINS = (
    "ART_ARCHITECTURE_AND_ARCHAEOLOGY",
    "BIOLOGY",
    "NUMISMATICS_AND_CURRENCIES",
    "CHEMISTRY_AND_MINERALOGY",
    "COMPUTING",
    "HEALTH_AND_MEDICINE",
    "HERALDRY_HONORS_AND_VEXILLOLOGY",
    "HISTORY",
    "LANGUAGE_AND_LINGUISTICS",
    "LAW_AND_CRIME",
    "LITERATURE_AND_THEATRE",
    "PHYSICS_AND_ASTRONOMY",
    "RELIGION_MYSTICISM_AND_MYTHOLOGY",
    "TRANSPORT_AND_TRAVEL",
    "COMMUNICATION_AND_TELECOMMUNICATION",
    "EMOTIONS_AND_FEELINGS",
    "NAVIGATION_AND_AVIATION",
    "SEX",
    "TIME",
    "SPORT_GAMES_AND_RECREATION",
    "CRAFT_ENGINEERING_AND_TECHNOLOGY",
    "MATHEMATICS_AND_STATISTICS",
    "FOOD_DRINK_AND_TASTE",
    "POLITICS_GOVERNMENT_AND_NOBILITY",
    "SPACE_AND_TOUCH",
    "SMELL_AND_PERFUME",
    "TASKS_JOBS_ROUTINE_AND_EVALUATION",
    "GEOGRAPHY_GEOLOGY_AND_PLACES",
    "SOLID_LIQUID_AND_GAS_MATTER",
    "POSSESSION",
    "FARMING_FISHING_AND_HUNTING",
    "TEXTILE_FASHION_AND_CLOTHING",
    "PHILOSOPHY_PSYCHOLOGY_AND_BEHAVIOR",
    "MUSIC_SOUND_AND_DANCING",
    "ENVIRONMENT_AND_METEOROLOGY",
    "EDUCATION_AND_SCIENCE",
    "CULTURE_ANTHROPOLOGY_AND_SOCIETY",
    "BUSINESS_INDUSTRY_AND_FINANCE",
    "WARFARE_VIOLENCE_AND_DEFENSE",
    "MEDIA_AND_PRESS",
    "VISION_AND_VISUAL",
)


def _lexfile(name: str) -> str:
    if name not in LEXFILES:
        raise ValueError(str(unknown("lexicographer file", name, LEXFILES, "WordNet")))
    return name


def _domain(name: str) -> str:
    if name not in DOMAINS:
        raise ValueError(str(unknown("domain", name, DOMAINS, "BabelDomains")))
    return name


def _relation(name: str) -> str:
    if name not in RELATION_IDS:
        raise ValueError(str(unknown("relation", name, RELATION_IDS, "BATS 3.0")))
    return name


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"'{text}' is not a regular expression ({error})") from None
    return text


def _listed(given: object) -> object:
    """A single relation may be a word, as ``--config relations=E06`` hands it over."""
    return [given] if isinstance(given, str) else given


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"names {repeated[0]} twice; name it once")
    return names


Relations = Annotated[
    tuple[Annotated[str, AfterValidator(_relation)], ...], BeforeValidator(_listed), AfterValidator(_once)
]


class Choice(Strict):
    """Senses that a side admits. Several choices are in order of preference."""

    pos: Pos = "NOUN"
    lexfiles: list[Annotated[str, AfterValidator(_lexfile)]] = Field([], description="none: every file of the pos")
    domains: list[Annotated[str, AfterValidator(_domain)]] = Field([], description="for senses without a lexfile")
    type: SynsetType | None = Field(None, description="for senses without a lexfile")
    gloss: Annotated[str, AfterValidator(_pattern)] | None = Field(None, description="what a definition must contain")
    words: list[str] = Field([], description="only for these words; none: for all")
    fallback: bool = Field(False, description="only for words that no earlier choice finds a sense for")


class GraphTest(Strict):
    """A relation of the inventory's own graph between the two sides."""

    edge: Edge
    start: Literal["source", "target"] = Field("source", description="side from which the edge leads to the other")
    required: bool = Field(False, description="else: senses that it links go before all others")


class RelationRule(Strict):
    """A relation: its directed name, how it relates to the others, and which senses its two sides admit.

    Attributes:
        name: ``source:target``, named after the data and not after the file (E01 is written capital -> country).
        family: relations of one family are the same relation, as the hypernyms of L01 and L02.
        inverted: the data runs against the family's direction (L03 is L02 exchanged).
        symmetric: exchanging a pair leaves the relation as it is.
        source: senses of the first word.
        target: senses of the second word.
        same: what the two senses must share.
        graph: test of the pair in the inventory's graph.
        twins: what happens to two words with a common synset. ``drop``: that synset is no pair, since both sentences
            are the same; ``exclusive``: other senses are no pair either, as the common one is the sense that is meant.
    """

    name: Annotated[str, Field(pattern=r"^[a-z_]+:[a-z_]+$")]
    family: Annotated[str, Field(pattern=r"^[a-z_]*$")] = ""
    inverted: bool = False
    symmetric: bool = False
    source: tuple[Choice, ...] = ()
    target: tuple[Choice, ...] = ()
    same: Literal["pos", "lexfile"] | None = None
    graph: GraphTest | None = None
    twins: Literal["drop", "exclusive"] = "drop"

    @model_validator(mode="after")
    def _both_sides(self) -> RelationRule:
        if bool(self.source) != bool(self.target):
            raise ValueError("needs rules for both sides or for none")
        return self

    @property
    def exchanged_name(self) -> str:
        """The name of the relation between the two words exchanged (``sound:animal``)."""
        return ":".join(reversed(self.name.split(":")))

    def directed(self, exchanged: bool = False) -> str:
        """Return a label that two directed relations share exactly if a pair of one is a positive of the other."""
        family = self.family or self.name
        return family if self.symmetric or self.inverted == exchanged else f"{family}^-1"


def load_rules(path: Path | None = None) -> dict[str, RelationRule]:
    """Read ``registry/relations.yaml``: all relations of BATS by id, of which those of E and L have rules.

    Raises:
        SembenchError: absent or broken file, unknown key, or an id that BATS does not have.
    """
    path = path or project_root() / "registry" / "relations.yaml"
    entries = read_yaml(path)
    for key in entries:
        if key not in RELATION_IDS:
            raise unknown("relation", str(key), RELATION_IDS, f"BATS 3.0 but in {path.name}")
    return {key: parse(RelationRule, value, f"{path.name}, relation '{key}'") for key, value in entries.items()}


def rule_of(rules: Mapping[str, RelationRule], relation: str) -> RelationRule:
    """Return the rules of a relation.

    Raises:
        SembenchError: it is unknown, or has no rules (inflected and derived forms have no definitions).
    """
    if relation not in rules:
        raise unknown("relation", relation, rules, "registry/relations.yaml")
    if not rules[relation].source:
        raise SembenchError(f"relation {relation} has no filter in registry/relations.yaml; add source and target")
    return rules[relation]


def check_relations(relations: Sequence[str], rules: Mapping[str, RelationRule]) -> None:
    """Raise for the first relation that is unknown or has no filter."""
    for relation in relations:
        rule_of(rules, relation)


class BuildOptions(Strict):
    """Choices in making DSBATS-sn. Table 2 of the paper is lost; the caps keep L02, L03, L06 and L09 below one half."""

    relations: Relations = Field(SEMANTIC, min_length=1)
    answers: int = Field(5, ge=0, description="answers of a source that are used; 0: all")
    senses: int = Field(2, ge=0, description="senses of a word, per side of a word pair; 0: all")
    glosses: int = Field(3, gt=0, description="definitions of a sense")
    graph: bool = Field(True, description="use the inventory's graph where a relation has a test")
    every_pos: bool = Field(
        True, description="look up all parts of speech, so that the report shows those rejected too"
    )
    source: Annotated[str, Field(pattern=r"^[A-Z0-9_]+$")] | None = Field(
        None, description="BabelNet: only senses of this resource, such as WN, which asks far less; none: of all"
    )
    domain_weight: float = Field(0.1, ge=0, le=1, description="weight from which a domain counts")
    strip_brackets: bool = Field(False, description="drop bracketed parts, as the paper's sentence about the cat")
    min_words: int = Field(3, ge=1, description="shorter sentences are dropped")
    min_pairs: int = Field(20, ge=1, description="definition pairs below which a cluster is reported")
    below_min: Literal["warn", "error"] = "warn"


class AugmentOptions(Strict):
    """Choices in making DSBATS4CL; see ``build_dsbats4cl``."""

    seed: int = Field(0, ge=0)
    rows: int = Field(2000, gt=0, description="rows of a cluster at most")
    balance: bool = Field(True, description="as many rows from every cluster as the poorest one gives")
    third_from: Literal["anchor", "positive", "other"] = "other"
    orientation: Literal["forward", "inverted", "both"] = "forward"
    symmetric: Literal["faithful", "other_relation", "skip"] = "other_relation"
