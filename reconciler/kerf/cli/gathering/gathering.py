"""What a command line means, as texts to judge: files as they are, and what kustomizations and charts come to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from kerf.cli.gathering import sources
from kerf.cli.gathering.sources import Source

if TYPE_CHECKING:
    from kerf.cli.gathering.git import Earlier, History
    from kerf.manifests.checking import Content

Note = Callable[[str], None]


def now(paths: Sequence[str], found: Sequence[Source], mode: str, note: Note, fetch: bool = False) -> list[Content]:
    """The texts of today. `mode` says what is rendered; `note` gets what could not be. Raises ToolMissing."""
    given = list(found)
    rendered: tuple[Content, ...] = ()
    charts: tuple[str, ...] = ()
    if mode != "never" and sources.is_rendered(source.name for source in found):
        from kerf.cli.gathering import rendering

        made = rendering.render(
            {os.path.realpath(path): path for path in paths if os.path.isdir(path)}, mode, fetch=fetch
        )
        given = [source for source in found if os.path.realpath(source.name) not in made.consumed]
        rendered, charts = made.contents, made.charts
        if made.note:
            note(made.note)
    return [*(_as_template(content, charts) for content in sources.contents(given)), *rendered]


def _as_template(content: Content, charts: Sequence[str]) -> Content:
    """The content, or for a template of a chart that is not rendered that its manifests are not judged.

    That is a warning where manifests of ours may be in it; of other templates nothing is to be said.
    """
    path = os.path.realpath(content.name)
    within = any(path.startswith(os.path.join(chart, "templates", "")) for chart in charts)
    if not within or b"{{" not in content.data:
        return content
    from kerf.manifests import file_rules, ours

    if not ours.mentions_ours(content.data):
        return replace(content, data=b"")
    fault = "its chart was not rendered, so its manifests are not checked"
    return replace(content, data=b"", fault=fault, rule=file_rules.RENDER, severity="warning")


@contextmanager
def then(
    history: History,
    paths: Sequence[str],
    found: Sequence[Source],
    today: Sequence[Content],
    mode: str,
    fetch: bool = False,
) -> Iterator[Earlier]:
    """The texts of a commit that differ from those of today; valid within the context. Raises repository.Refused."""
    from kerf.cli.gathering.git import Earlier

    earlier = history.earlier(paths, found)
    if mode == "never" or not sources.is_rendered(history.blobs):
        yield earlier
        return
    from kerf.cli.gathering import rendering

    with TemporaryDirectory(prefix="kerf-") as folder:
        folder = os.path.realpath(folder)
        history.check_out(folder)
        old = {os.path.join(folder, history.within(path)): path for path in paths}
        made = rendering.render(
            {place: path for place, path in old.items() if os.path.isdir(place)}, "auto", fetch=fetch, root=folder
        )
        gone = {os.path.relpath(path, folder) for path in made.consumed}
        kept = [content for content in earlier.contents if history.within(content.name) not in gone]
        were: Mapping[str, bytes] = {content.name: content.data for content in made.contents}
        are: Mapping[str, bytes] = {content.name: content.data for content in today if content.origin}
        differ = {name for name in {**were, **are} if were.get(name) != are.get(name)}
        changed = earlier.changed | differ
        yield Earlier((*kept, *(content for content in made.contents if content.name in changed)), changed)
