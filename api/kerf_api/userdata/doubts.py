"""User data that can be merged, but surely does not do what its author wants: reported as warnings, never refused.

These warnings rest on what is known of the programs on the node: cloud-init runs a script only when it begins with `#!`
and passes over a part of a type it does not know; nodeadm takes NodeConfigs of one version; Bottlerocket reads settings
only; EC2Launch ends a script at the first closing tag. Source: AWS provider reference §2.4 and §5.4; cloud-init, "User
data formats"; amazon-eks-ami, "nodeadm"; EC2, "How Amazon EC2 handles user data for Windows instances".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from . import bottlerocket, cloud_init, mime, node_config, shown
from .mime import Part
from .rules import AS_IT_IS, LIMIT_BYTES, is_windows

Kind = Literal[
    "little space", "another family", "no script", "unknown type", "no NodeConfig", "replaced", "tags", "repeated",
    "open end", "no table",
]  # fmt: skip

#: From nine tenths of the limit on it is worth a word; the cluster's certificate alone needs more than what is left.
ROOM_ENDS_AT: Final = LIMIT_BYTES * 9 // 10
_NODE_CONFIG_SAYS: Final = ["apiVersion node.eks.aws/v1alpha1", "kind NodeConfig"]
_SCRIPTS: Final = frozenset(
    {"text/x-shellscript", *(f"text/x-shellscript-per-{w}" for w in ("boot", "instance", "once"))}
)
#: What cloud-init has a reader for, what it looks into to find its kind, and what it unpacks.
_READ: Final = _SCRIPTS | {
    *("text/cloud-boothook", "text/cloud-config", "text/cloud-config-archive", "text/cloud-config-jsonp"),
    *("text/jinja2", "text/part-handler", "text/upstart-job", "text/x-include-once-url", "text/x-include-url"),
    *("text/plain", "text/x-not-multipart", "application/octet-stream"),
    *("application/gzip", "application/gzip-compressed", "application/gzipped", "application/x-compress"),
    *("application/x-compressed", "application/x-gunzip", "application/x-gzip", "application/x-gzip-compressed"),
}
_HANDLER: Final = "text/part-handler"
_SETTINGS = re.compile(r"\[{1,2}\s{0,9}settings\s{0,9}[.\]]")
_NODE_CONFIG = re.compile(r"""^[ \t"'{]{0,40}apiVersion["']?[ \t]{0,9}:[ \t]{0,9}["']?node\.eks\.aws/""", re.MULTILINE)
_TAG = re.compile("</?(?:powershell|script|persist|powershellArguments)>", re.IGNORECASE)
_WINDOWS = re.compile("<(?:powershell|script)>", re.IGNORECASE)


_CLOUD_INIT: Final = "Linux with cloud-init"
#: What "#!" and "MIME-Version:" are in base64.
_ENCODED: Final = ("IyE", "TUlNRS1WZXJzaW9uO")


@dataclass(frozen=True, slots=True)
class Doubt:
    """What kind of doubt it is, and what is doubtful."""

    kind: Kind
    words: str


def doubts(family: str, text: str, *, raid0: bool = False) -> Iterator[Doubt]:
    """What is doubtful in user data that has no fault. `raid0`: the class mounts the disks of the instance itself."""
    if family in AS_IT_IS or not text.strip():
        return
    yield from _room(family, text)
    other = written_for(text) if family != "Bottlerocket" else ""
    if other and not _takes(family, other):
        yield Doubt("another family", f"is written for {other}, and {family} nodes cannot read it")
    elif family == "Bottlerocket":
        yield from _settings(bottlerocket.settings(text), raid0=raid0)
    elif is_windows(family):
        yield from _tags(text)
    else:
        yield from _cloud_init(text, nodeadm=family == "AL2023")


def _room(family: str, text: str) -> Iterator[Doubt]:
    lines = text.splitlines(keepends=True)
    if family == "Bottlerocket":  # comments do not reach the node
        lines = [line for line in lines if not line.lstrip().startswith("#")]
    size = sum(len(line.encode()) for line in lines)
    if size >= ROOM_ENDS_AT:
        words = f"has {size} of the {LIMIT_BYTES} bytes that EC2 allows, before Kerf adds what a node needs to join"
        yield Doubt("little space", words)


def written_for(text: str) -> str:
    """What a text was surely written for; empty when that is not certain."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines[0].startswith("#!"):
        return "" if "pwsh" in lines[0] else _CLOUD_INIT
    if lines[0].startswith(("#cloud-config", "#cloud-boothook")) or mime.is_archive(text):
        return _CLOUD_INIT
    if _WINDOWS.match(lines[0]):
        return "Windows"
    if _SETTINGS.match(next((line for line in lines if not line.startswith("#")), "")):
        return "Bottlerocket"
    return "AL2023" if _NODE_CONFIG.search(text) else ""


def _takes(family: str, written_for: str) -> bool:
    if is_windows(family):
        return written_for == "Windows"
    return written_for in (family, _CLOUD_INIT)


def _settings(tree: Mapping[str, Any], *, raid0: bool) -> Iterator[Doubt]:
    outside = [key for key in tree if key != "settings"]
    if outside:
        yield Doubt("replaced", f"{shown(outside[0])} is ignored: Bottlerocket reads nothing outside settings")
    for key, instead in (("node-taints", "the NodePool's taints"), ("max-pods", "spec.kubelet.maxPods")):
        if key in tree["settings"]["kubernetes"]:
            yield Doubt("replaced", f"settings.kubernetes.{key} is replaced for every node by {instead}")
    if not isinstance(tree["settings"]["kubernetes"].get("node-labels", {}), Mapping):
        yield Doubt("no table", "settings.kubernetes.node-labels is not a table, so these labels are left out")
    if raid0 and (name := _mounting(tree["settings"].get("bootstrap-commands"))):
        words = f"settings.bootstrap-commands.{shown(name)} prepares the disks that instanceStorePolicy RAID0 prepares"
        yield Doubt("repeated", words)


def _mounting(commands: Any) -> str:
    """The name of a bootstrap command that prepares the disks of the instance; empty when there is none."""
    for name, command in commands.items() if isinstance(commands, Mapping) else ():
        rows = command.get("commands") if isinstance(command, Mapping) and command.get("mode") != "off" else None
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, list) and "ephemeral-storage" in row:
                return str(name)
    return ""


def _tags(text: str) -> Iterator[Doubt]:
    found = _TAG.search(text)
    if found:
        words = f"contains {found[0]}, but is put between <powershell> and </powershell> as it is"
        yield Doubt("tags", words)


def _cloud_init(text: str, *, nodeadm: bool) -> Iterator[Doubt]:
    if nodeadm and written_for(text) == "AL2023" and not node_config.is_mapping(text):
        yield from _node_config(Part.of(mime.NODE_CONFIG, text), "")
        return
    parts = cloud_init.parts(text, nodeadm=nodeadm)
    archive = mime.is_archive(text)
    if archive and mime.has_open_end(text):
        yield Doubt("open end", "its last boundary line does not end with --: not every reader of MIME accepts that")
    handled = any(part.kind == _HANDLER for part in parts)
    for number, part in enumerate(parts, 1):
        place = f"part {number} " if archive else ""
        if part.kind == mime.NODE_CONFIG and nodeadm:
            yield from _node_config(part, place)
        elif part.kind in _SCRIPTS:
            yield from _script(part, place, nodeadm=nodeadm)
        elif part.kind not in _READ and not handled:
            yield Doubt("unknown type", f"{place}has the type {shown(part.kind)}, which nothing on the node reads")


def _script(part: Part, place: str, *, nodeadm: bool) -> Iterator[Doubt]:
    """AL2023's cloud-init wants `#!` to the letter first; that of AL2 forgives empty lines before it."""
    text = part.text if nodeadm else part.text.lstrip()
    if part.encoded or text.startswith("#!"):
        return
    if text.lstrip().startswith("#!"):
        words = "has an empty line or a space before #!, so nothing can run it"
    elif text.lstrip().startswith(_ENCODED):
        words = "is in base64, and would be encoded again; write it as plain text"
    else:
        words = "is read as a script, but does not begin with #!, so nothing can run it"
    yield Doubt("no script", place + words)


def _node_config(part: Part, place: str) -> Iterator[Doubt]:
    if part.encoded:
        return
    if part.text.lstrip().startswith("#cloud-config"):
        yield Doubt("no NodeConfig", f"{place}is cloud-config, but is handed to nodeadm as a NodeConfig")
        return
    try:
        found = node_config.read(part.text)
    except ValueError as error:
        yield Doubt("no NodeConfig", f"{place}is no NodeConfig: {error}")
        return
    said = [f"{key} {shown(str(found[key]))}" if key in found else f"no {key}" for key in ("apiVersion", "kind")]
    if said != _NODE_CONFIG_SAYS:
        words = f"{place}is read by nodeadm, which needs {' and '.join(_NODE_CONFIG_SAYS)}; it has {' and '.join(said)}"
        yield Doubt("no NodeConfig", words)
