"""`kerf explain`: a rule's page of the rule book, for readers of a message with its ID."""

from __future__ import annotations

from collections.abc import Sequence

from kerf.cli.parser import Parser
from kerf.cli.terminal import say


def main(arguments: Sequence[str]) -> int:
    """Print the page of each rule that is named; 2 when one is not known."""
    parser = Parser("kerf explain", description="Explain a rule: what it checks, why, and the fix.")
    parser.add_argument("rules", nargs="+", metavar="RULE", help="the ID of a rule, such as KERF-NP-120")
    asked = parser.parse_args(arguments)
    from kerf.manifests import ignores
    from kerf_api.lint import rulebook
    from kerf_api.lint.rulebook import page

    book = rulebook.book()
    names = [name.upper() if name.upper() in book else f"KERF-{name.upper()}" for name in asked.rules]
    for name, given in zip(names, asked.rules, strict=True):
        if name not in book:
            hint = ignores.did_you_mean(given.upper(), frozenset(book))
            say(f"kerf explain: {given} is no rule" + (f"; {hint}" if hint else ""), err=True)
            return 2
    say("\n\n".join(page.text(book[name]) for name in names))
    return 0
