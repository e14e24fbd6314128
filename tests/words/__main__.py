"""Report each place of the repository's texts where a phrase of the list is; 1 when there is any.

python -m tests.words [PATH ...]    # only files below these
"""

from __future__ import annotations

import sys

from tests.words.check import hits


def main(paths: list[str]) -> int:
    found = [one for one in hits() if not paths or one.startswith(tuple(paths))]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} places", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
