"""The verbs of `kerf`, a module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Verbs with a module of their name whose `main` reads the rest of the command line, and what they are for.
QUICK: Final[Mapping[str, str]] = {
    "validate": "Check the YAML of NodePools and EC2NodeClasses before it is applied.",
    "plan": "Show the effect of a change of NodePools and EC2NodeClasses before it is applied.",
    "replay": "Reproduce the recorded decisions of a controller, list them, or save the cluster as of then.",
    "explain": "Explain a rule: what it checks, why, and the fix.",
    "default": "Print a manifest with every default filled in and marked.",
    "convert": "Rewrite manifests of older versions for v1, comments and all.",
    "schema": "Print the JSON Schema of a kind, for editors and kubeconform.",
}
