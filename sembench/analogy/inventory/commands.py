"""What the command line says about a crawl."""

from __future__ import annotations

from sembench.analogy.inventory.crawl import CrawlPlan, CrawlReport


def plan_text(left: CrawlPlan, per_day: int = 1000) -> str:
    """Return what is still to be asked, and how many days that takes with so many requests a day."""
    bound = "at least" if left.lookups else "exactly"
    kinds = [f"{left.lookups} words to look up", f"{left.synsets} known synsets to fetch"]
    kinds += ["1 for the version"] if left.version else []
    lines = [
        f"{left.complete} of {left.words} words are complete",
        f"{bound} {left.remaining} requests remain: {', '.join(kinds)}",
    ]
    if left.lookups:
        basis = "measured so far" if left.measured else "a guess before the first answers"
        lines.append(
            f"estimate: {left.expected} requests in all ({left.fan_out:.1f} synsets a word, {basis}), "
            f"{_days(left.expected, per_day)} with {per_day} requests a day"
        )
    elif left.remaining:
        lines.append(f"{_days(left.remaining, per_day)} with {per_day} requests a day")
    return "\n".join(lines)


def crawl_text(report: CrawlReport, per_day: int = 1000) -> str:
    """Return what a crawl did and what remains."""
    ends = {
        "complete": "all words are complete",
        "budget": "stopped at the own limit",
        "limit": "stopped at the daily limit of the service",
    }
    first = f"{ends[report.stopped]} after {report.spent} requests"
    message = [report.message] if report.message else []
    return "\n".join([first, *message, *([plan_text(report.plan, per_day)] if report.remaining else [])])


def _days(requests: int, per_day: int) -> str:
    days = -(-requests // per_day)
    return f"{days} day{'s' if days != 1 else ''}"
