"""`make questions`: what strangers ask, with the answers; 1 when a place that an answer names is not there."""

from __future__ import annotations

import sys
from textwrap import fill

from tests.questions.asked import missing, questions


def main() -> int:
    """Print each question with its answer and places, and below it what of these is not there."""
    lost = 0
    for number, one in enumerate(questions(), 1):
        print(f"{number}. {one.question}")
        print(fill(one.answer, 110, initial_indent="   ", subsequent_indent="   "))
        print("   " + "\n   ".join(one.places))
        for place in missing(one):
            lost += 1
            print(f"   NOT THERE: {place}")
    print(f"{lost} places are not there" if lost else "every place is there")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
