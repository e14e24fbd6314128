"""The planted bugs of the conversion: most are what converters of those days did, or what a hasty one would do."""

from __future__ import annotations

from tests.mutations.bug import Bug, Edit

_POOLS, _CLASSES = "api/conversion/pools.py", "api/conversion/classes.py"
_KUBELETS, _CONVERT = "api/conversion/kubelets.py", "api/conversion/__init__.py"
_REVIEWED = "tests/unit/conversion/test_conversion.py::test_it_becomes_what_was_reviewed"


def _case(name: str) -> tuple[str]:
    return (f"{_REVIEWED}[{name}]",)


BUGS = (
    Bug(
        "nodes that never expired expire",
        "A Provisioner without ttlSecondsUntilExpired gets v1's default, and after 30 days every node is replaced.",
        (Edit(_POOLS, '    if work.draft.get(*_TEMPLATE, "expireAfter") is None:\n', "    if False:\n"),),
        _case("nothing-said"),
    ),
    Bug(
        "consolidation where there was none",
        "A Provisioner that asked for nothing has its nodes consolidated.",
        (
            Edit(
                _POOLS,
                "_UNDERUTILIZED if enabled else _EMPTY, *(",
                "_UNDERUTILIZED if enabled or ttl is None else _EMPTY, *(",
            ),
        ),
        _case("nothing-said"),
    ),
    Bug(
        "consolidation that was off begins",
        "WhenUnderutilized with consolidateAfter Never was off; it becomes 0s.",
        (Edit(_POOLS, "    if after is None:\n", "    if after is None or old == _OLD_UNDERUTILIZED:\n"),),
        _case("pool-underutilized-never"),
    ),
    Bug(
        "empty nodes that stayed go",
        "WhenEmpty without consolidateAfter becomes 0s.",
        (Edit(_POOLS, 'durations.NEVER if old == _EMPTY else "0s"', '"0s"'),),
        _case("pool-empty"),
    ),
    Bug(
        "spot nodes of another architecture",
        "What the old webhook added to a Provisioner without requirements is not written out.",
        (Edit(_POOLS, "    for requirement in added:\n", "    for requirement in ():\n"),),
        _case("requirements-none"),
    ),
    Bug(
        "reference to a kind of old",
        "The new reference names AWSNodeTemplate.",
        (Edit(_POOLS, "old_names.KINDS.get(str(kind), kind)", "kind"),),
        _case("provisioner-reference-kind"),
    ),
    Bug(
        "a term with an ID and tags",
        "What stood beside an ID stays in the term, which v1 refuses or reads differently.",
        (
            Edit(
                "api/conversion/selectors.py",
                '[{"id": name} for name in ids] if ids',
                '[{"id": name} | ({"tags": tags} if tags else {}) for name in ids] if ids',
            ),
        ),
        _case("template-image-ids"),
    ),
    Bug(
        "lists with commas stay lists",
        "A tag with a list of values becomes one term that no subnet has.",
        (
            Edit(
                "api/conversion/selectors.py",
                "product(*(_listed(value) or [value] for value in tags.values()))",
                "product(*([value] for value in tags.values()))",
            ),
        ),
        _case("template-subnet-tags"),
    ),
    Bug(
        "containers without metadata",
        "The hop limit of 2 is not written out, and v1's default is 1.",
        (
            Edit(
                _CLASSES,
                "    if options is not None and not isinstance",
                "    if options is None:\n        return\n    if options is not None and not isinstance",
            ),
        ),
        _case("template-families"),
    ),
    Bug(
        "instance profile left out",
        "A class without a profile gets a placeholder that nobody reads.",
        (
            Edit(
                _CLASSES,
                "        work.tell(NO_PROFILE, steps, message, hint)\n",
                '        work.add(("spec", "role"), "$KARPENTER_NODE_ROLE")\n',
            ),
        ),
        _case("template-no-profile"),
    ),
    Bug(
        "Ubuntu with the images of another family",
        "A class for Ubuntu without a selector starts Amazon Linux.",
        (
            Edit(
                _CLASSES,
                "    elif family in ALIAS_FAMILIES.values():\n",
                '    elif (family := "AL2" if family == "Ubuntu" else family) in ALIAS_FAMILIES.values():\n',
            ),
        ),
        _case("template-ubuntu"),
    ),
    Bug(
        "one kubelet for all",
        "Two pools of one class want different things of the kubelet, and both get what the first one wants.",
        (Edit(_KUBELETS, "        if wanted == stays:\n", "        if True:\n"),),
        _case("kubelet-two"),
    ),
    Bug(
        "kubelet dropped in silence",
        "The class is not among the files, and nobody is told that the configuration is gone.",
        (Edit(_KUBELETS, '            _lost(user, f"{count} among the files", hint)\n', "            pass\n"),),
        _case("kubelet-alone"),
    ),
    Bug(
        "half of a move",
        "A pool loses its kubelet configuration although its class could not be converted.",
        (Edit(_CONVERT, "    failed = _failed(works, ties)\n", "    failed = _failed(works, ())\n"),),
        _case("kubelet-tied"),
    ),
    Bug(
        "unknown fields dropped in silence",
        "A misspelled field is gone after the conversion, and nobody knows.",
        (
            Edit(
                "api/conversion/work.py",
                "            _unknown(work, table, here, above, value)\n",
                "            pass\n",
            ),
        ),
        _case("unknown-field"),
    ),
    Bug(
        "results that v1 refuses",
        "What comes out is not checked.",
        (Edit(_CONVERT, "            _refuse(works, work, drafts or ())\n", "            pass\n"),),
        _case("template-disk"),
    ),
    Bug(
        "two pools of one name",
        "In the middle of an upgrade the Provisioner becomes a second NodePool of the same name.",
        (Edit(_CONVERT, "    _meet_namesakes(works)\n", ""),),
        _case("namesakes"),
    ),
    Bug(
        "comments of what is gone are gone",
        "The comment of a field that is left out is lost.",
        (Edit("reconciler/cli/rewriting.py", "            found += self._strays.get(source.spot, ())\n", ""),),
        ("tests/unit/conversion/test_conversion.py::test_it_becomes_what_was_reviewed[requirements-dropped]",),
    ),
    Bug(
        "half of a file written",
        "A file with something that cannot be converted is written, and half of it is of v1.",
        (
            Edit("reconciler/cli/convert.py", "        if file.faulty:\n", "        if file.unreadable:\n"),
            Edit("reconciler/cli/convert.py", "        elif not file.whole:\n", "        elif False:\n"),
        ),
        ("tests/unit/cli/test_convert.py::test_a_file_that_cannot_be_converted_whole_is_left",),
    ),
)
