"""The planted bugs of the conversion: most are what converters of those days did, or what a hasty one would do."""

from __future__ import annotations

from tests.mutations.bug import Bug
from tests.mutations.edits import Edit

_REVIEWED = "tests/unit/conversion/test_conversion.py::test_it_becomes_what_was_reviewed"


def _case(name: str) -> tuple[str]:
    return (f"{_REVIEWED}[{name}]",)


BUGS = (
    Bug(
        "nodes that never expired expire",
        "A Provisioner without ttlSecondsUntilExpired gets v1's default, and after 30 days every node is replaced.",
        (Edit("api/kerf_api/conversion:provisioner", "work.draft.get(*_TEMPLATE, 'expireAfter') is None", "False"),),
        _case("nothing-said"),
    ),
    Bug(
        "consolidation where there was none",
        "A Provisioner that asked for nothing has its nodes consolidated.",
        (
            Edit(
                "api/kerf_api/conversion:_consolidation",
                "_UNDERUTILIZED if enabled else _EMPTY",
                "_UNDERUTILIZED if enabled or ttl is None else _EMPTY",
            ),
        ),
        _case("nothing-said"),
    ),
    Bug(
        "consolidation that was off begins",
        "WhenUnderutilized with consolidateAfter Never was off; it becomes 0s.",
        (Edit("api/kerf_api/conversion:_disruption", "after is None", "after is None or old == _OLD_UNDERUTILIZED"),),
        _case("pool-underutilized-never"),
    ),
    Bug(
        "empty nodes that stayed go",
        "WhenEmpty without consolidateAfter becomes 0s.",
        (Edit("api/kerf_api/conversion:_disruption", "durations.NEVER if old == _EMPTY else '0s'", "'0s'"),),
        _case("pool-empty"),
    ),
    Bug(
        "spot nodes of another architecture",
        "What the old webhook added to a Provisioner without requirements is not written out.",
        (
            Edit(
                "api/kerf_api/conversion:_assumed_requirements",
                "for requirement in added:\n    work.draft.append(_REQUIREMENTS, requirement)",
                "for requirement in ():\n    work.draft.append(_REQUIREMENTS, requirement)",
            ),
        ),
        _case("requirements-none"),
    ),
    Bug(
        "reference to a kind of old",
        "The new reference names AWSNodeTemplate.",
        (Edit("api/kerf_api/conversion:class_reference.refer", "old_names.KINDS.get(str(kind), kind)", "kind"),),
        _case("provisioner-reference-kind"),
    ),
    Bug(
        "a term with an ID and tags",
        "What stood beside an ID stays in the term, which v1 refuses or reads differently.",
        (
            Edit(
                "api/kerf_api/conversion:terms",
                "{'id': name}",
                "{'id': name} | ({'tags': tags} if tags else {})",
            ),
        ),
        _case("template-image-ids"),
    ),
    Bug(
        "lists with commas stay lists",
        "A tag with a list of values becomes one term that no subnet has.",
        (
            Edit(
                "api/kerf_api/conversion:_combined",
                "_listed(value) or [value]",
                "[value]",
            ),
        ),
        _case("template-subnet-tags"),
    ),
    Bug(
        "containers without metadata",
        "The hop limit of 2 is not written out, and v1's default is 1.",
        (
            Edit(
                "api/kerf_api/conversion:_hops",
                "place = (*steps, 'metadataOptions')",
                "place = (*steps, 'metadataOptions')\nif options is None:\n    return",
            ),
        ),
        _case("template-families"),
    ),
    Bug(
        "instance profile left out",
        "A class without a profile gets a placeholder that nobody reads.",
        (
            Edit(
                "api/kerf_api/conversion:_profile",
                "work.tell(NO_PROFILE, steps, message, hint)",
                "work.add(('spec', 'role'), '$KARPENTER_NODE_ROLE')",
            ),
        ),
        _case("template-no-profile"),
    ),
    Bug(
        "Ubuntu with the images of another family",
        "A class for Ubuntu without a selector starts Amazon Linux.",
        (
            Edit(
                "api/kerf_api/conversion:_images",
                "family in ALIAS_FAMILIES.values()",
                "(family := ('AL2' if family == 'Ubuntu' else family)) in ALIAS_FAMILIES.values()",
            ),
        ),
        _case("template-ubuntu"),
    ),
    Bug(
        "one kubelet for all",
        "Two pools of one class want different things of the kubelet, and both get what the first one wants.",
        (Edit("api/kerf_api/conversion:_settle", "wanted == stays", "True"),),
        _case("kubelet-two"),
    ),
    Bug(
        "kubelet dropped in silence",
        "The class is not among the files, and nobody is told that the configuration is gone.",
        (Edit("api/kerf_api/conversion:_settle", "_lost(user, f'{count} among the files', hint)", "pass"),),
        _case("kubelet-alone"),
    ),
    Bug(
        "half of a move",
        "A pool loses its kubelet configuration although its class could not be converted.",
        (Edit("api/kerf_api/conversion:convert", "_failed(works, ties)", "_failed(works, ())"),),
        _case("kubelet-tied"),
    ),
    Bug(
        "unknown fields dropped in silence",
        "A misspelled field is gone after the conversion, and nobody knows.",
        (
            Edit(
                "api/kerf_api/conversion:_read",
                "_unknown(work, table, here, above, value)",
                "pass",
            ),
        ),
        _case("unknown-field"),
    ),
    Bug(
        "results that v1 refuses",
        "What comes out is not checked.",
        (Edit("api/kerf_api/conversion:convert", "_refuse(works, work, drafts or ())", "pass"),),
        _case("template-disk"),
    ),
    Bug(
        "two pools of one name",
        "In the middle of an upgrade the Provisioner becomes a second NodePool of the same name.",
        (Edit("api/kerf_api/conversion:convert", "_meet_namesakes(works)", ""),),
        _case("namesakes"),
    ),
    Bug(
        "comments of what is gone are gone",
        "The comment of a field that is left out is lost.",
        (Edit("reconciler/kerf/cli:Writer._above", "found += self._strays.get(source.spot, ())", ""),),
        ("tests/unit/conversion/test_conversion.py::test_it_becomes_what_was_reviewed[requirements-dropped]",),
    ),
    Bug(
        "half of a file written",
        "A file with something that cannot be converted is written, and half of it is of v1.",
        (
            Edit("reconciler/kerf/cli:_write", "file.faulty", "file.unreadable"),
            Edit("reconciler/kerf/cli:_write", "not file.whole", "False"),
        ),
        ("tests/unit/cli/test_convert.py::test_a_file_that_cannot_be_converted_whole_is_left",),
    ),
)
