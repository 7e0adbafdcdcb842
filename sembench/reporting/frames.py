"""Tables that show a data set: cluster sizes, examples. No scores, no paper values."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from sembench.core.files import write_text
from sembench.registry.models import FrameTable
from sembench.registry.plan import Plan
from sembench.reporting.tables import environment, latex_escape, markdown_escape
from sembench.results.records import read_frame


def shown_frame(spec: FrameTable, path: Path) -> pd.DataFrame:
    """Return what a table shows of a data set, columns under their labels.

    Raises:
        SembenchError: the file cannot be read or lacks a column.
    """
    frame = read_frame(path, [column.key for column in spec.columns])
    if spec.relations:
        frame = frame[frame["relation"].isin(spec.relations)]
    if spec.per_relation:
        frame = frame.groupby("relation", sort=False).head(spec.per_relation)
    kept = frame[[column.key for column in spec.columns]]
    return kept.set_axis([column.label for column in spec.columns], axis=1).reset_index(drop=True)


def write_frame(plan: Plan, key: str) -> list[Path]:
    """Write a data set's table as csv, md, tex and html below the plan's root and return their paths."""
    spec = plan.registry.frames[key]
    frame = shown_frame(spec, plan.root / plan.layout.analogy(spec.source))
    texts = {
        "csv": frame.to_csv(index=False, lineterminator="\n"),
        "md": frame_markdown(spec, frame),
        "tex": frame_latex(key, spec, frame),
        "html": frame_html(plan, key, frame),
    }
    paths = {suffix: plan.root / plan.layout.table(key, suffix) for suffix in texts}
    for suffix, text in texts.items():
        write_text(paths[suffix], text)
    return list(paths.values())


def _cells(frame: pd.DataFrame) -> list[list[str]]:
    # Words of several parts are written with underscores in BATS.
    return [[str(value).replace("_", " ") for value in row] for row in frame.itertuples(index=False)]


def _caption(spec: FrameTable, frame: pd.DataFrame) -> str:
    nothing = "" if len(frame) else " None of these relations is among those that were asked for."
    return spec.caption + nothing


def frame_markdown(spec: FrameTable, frame: pd.DataFrame) -> str:
    """Return the table as GitHub-flavoured Markdown."""
    rows = [[markdown_escape(cell) for cell in row] for row in [list(frame.columns), *_cells(frame)]]
    rows.insert(1, [":--"] * len(frame.columns))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"## {markdown_escape(spec.title)}\n\n{markdown_escape(_caption(spec, frame))}\n\n{table}\n"


def frame_latex(key: str, spec: FrameTable, frame: pd.DataFrame) -> str:
    """Return the table as a LaTeX float; it needs the package booktabs."""
    head, *body = [" & ".join(latex_escape(c) for c in row) + r" \\" for row in [list(frame.columns), *_cells(frame)]]
    lines = [
        r"\begin{table*}[t]",
        r"\centering\small",
        rf"\begin{{tabular}}{{{'l' * len(frame.columns)}}}",
        *(r"\toprule", head, r"\midrule", *body, r"\bottomrule"),
        r"\end{tabular}",
        rf"\caption{{{latex_escape(spec.title)}. {latex_escape(_caption(spec, frame))}}}",
        rf"\label{{tab:{key.replace('_', '-')}}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def frame_html(plan: Plan, key: str, frame: pd.DataFrame) -> str:
    """Return the table as an HTML fragment."""
    spec = plan.registry.frames[key]
    template = environment(plan.root).get_template("frame.html.j2")
    return str(
        template.render(
            id=key, title=spec.title, caption=_caption(spec, frame), columns=list(frame.columns), rows=_cells(frame)
        )
    )


def frame_views(plan: Plan) -> list[str]:
    """Return the fragments of all data-set tables whose data are on the disk, for the page."""
    made = {key: plan.root / plan.layout.analogy(spec.source) for key, spec in plan.frames.items()}
    return [
        frame_html(plan, key, shown_frame(plan.registry.frames[key], path))
        for key, path in made.items()
        if path.is_file()
    ]
