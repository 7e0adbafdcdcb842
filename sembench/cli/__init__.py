"""The command line: score any encoder, compare two, and look at what is known, planned and fetched."""

from __future__ import annotations

import typer

from sembench.cli import analogy, compare, data, plan, score
from sembench.core.errors import explained

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, pretty_exceptions_enable=False)
for module in (score, compare, plan, data):
    module.register(app)
app.add_typer(analogy.app, name="babelnet")


@explained
def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2."""
    app()
