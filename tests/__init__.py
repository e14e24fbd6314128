"""The tests. `python -m tests.tiers` runs every tier that this machine can run."""

from tests.sources import of_another_tree

if others := of_another_tree():
    raise ImportError(
        f"{', '.join(others)} would come from another tree or from nowhere: run `make .venv/.dev` in this one and use "
        "its Python, or set PYTHONPATH=api:reconciler:webhook"
    )
