"""What people and programs read of a report, word for word."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

from kerf.cli.reports import formats
from kerf.cli.verbs import validate
from kerf.manifests.checking import Content, Report, Wish, check

from .test_checking import CLAIM, OTHER, known

WRONG = CLAIM.replace("  name:", "  labels: {on: x}\n  name:").replace("spec:\n", "spec:\n  expireAfter: 30d\n")
BROKEN = "a: b\n---\nc: d: e\n"


def report(*, strict: bool = False) -> Report:
    texts = {
        "clean.yaml": CLAIM.replace("[on]", "[a]").replace("x7k2p", "clean") + "---\n" + OTHER,
        "50%, a:b/wrong.yaml": WRONG,
        "<stdin>": BROKEN,
    }
    return check([Content(name, text.encode()) for name, text in texts.items()], Wish(strict=strict), known)


def test_text() -> None:
    assert formats.text(report()) == (
        "50%, a:b/wrong.yaml:4:12: warning: NodeClaim general-x7k2p: metadata.labels.true: "
        'the key on is read as "true"; put it in quotes: "on" [KERF-FILE-KEY]\n'
        '50%, a:b/wrong.yaml:7:16: error: NodeClaim general-x7k2p: spec.expireAfter: "30d" does not match the '
        "pattern; needed is a duration of whole hours, minutes and seconds such as 720h or 1h30m, or Never; "
        'did you mean "720h"? [KERF-SCHEMA-PATTERN]\n'
        "50%, a:b/wrong.yaml:12:14: error: NodeClaim general-x7k2p: spec.requirements[0].values[0]: "
        "true is a boolean, a text is needed (unquoted, on is read as true); "
        'put it in quotes: "on" [KERF-SCHEMA-TYPE]\n'
        "<stdin>:3:5: error: this is no YAML: a second colon makes no sense here; "
        "put the value in quotes, or indent it under its key [KERF-FILE-YAML]\n"
        "3 errors and 1 warning in 2 manifests of 3 files; 2 documents of other kinds skipped\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CLAIM.replace("[on]", "[a]"), "no problem in 1 manifest of 1 file\n"),
        (OTHER, "no problem in 0 manifests of 1 file; 1 document of other kinds skipped\n"),
        ("# kerf:ignore KERF-NP-101 x\n", "1 note in 0 manifests of 1 file\n"),
    ],
)
def test_the_summary(text: str, words: str) -> None:
    assert formats.text(check([Content("a.yaml", text.encode())], Wish(), known)).endswith(words)


def test_colours_change_no_word() -> None:
    coloured = formats.text(report(), colour=True)
    assert "\x1b[1;31merror\x1b[0m: " in coloured
    plain = coloured.replace("\x1b[0m", "")
    for colour in ("31", "33", "36"):
        plain = plain.replace(f"\x1b[1;{colour}m", "")
    assert plain == formats.text(report())


def test_json() -> None:
    told = json.loads(formats.as_json(report()))
    assert told["summary"] == {"files": 3, "manifests": 2, "skipped": 2, "errors": 3, "warnings": 1, "infos": 0}
    assert told["version"] == 1
    assert told["problems"][1] == {
        "file": "50%, a:b/wrong.yaml",
        "line": 7,
        "column": 16,
        "endLine": 7,
        "endColumn": 19,
        "object": "NodeClaim general-x7k2p",
        "rule": "KERF-SCHEMA-PATTERN",
        "severity": "error",
        "path": "spec.expireAfter",
        "message": '"30d" does not match the pattern; needed is a duration of whole hours, minutes and seconds such '
        "as 720h or 1h30m, or Never",
        "hint": 'did you mean "720h"?',
        "value": "30d",
    }


def test_github() -> None:
    lines = formats.github(report()).splitlines()
    assert lines[0] == (
        "::warning file=50%25%2C a%3Ab/wrong.yaml,line=4,col=12,endLine=4,endColumn=12,title=KERF-FILE-KEY::"
        'NodeClaim general-x7k2p: metadata.labels.true: the key on is read as "true"; '
        'put it in quotes: "on" [KERF-FILE-KEY]'
    )
    assert [line.split(" ")[0] for line in lines] == ["::warning", "::error", "::error", "::error", "3"]
    assert lines[-1] == formats.summary(report())


def test_a_line_of_github_is_one_line() -> None:
    text = CLAIM.replace("[on]", '["50%\\n::error::x"]').replace("general-x7k2p", '"x\\n::error::y"')
    found = check([Content("a.yaml", text.encode())], Wish(), known)
    assert len(formats.github(found).splitlines()) == len(found.findings) + 1


def test_gitlab() -> None:
    entries = json.loads(formats.FORMATS["gitlab"](report()))
    assert entries[0] == {
        "description": 'NodeClaim general-x7k2p: metadata.labels.true: the key on is read as "true"; '
        'put it in quotes: "on" [KERF-FILE-KEY]',
        "check_name": "KERF-FILE-KEY",
        "fingerprint": entries[0]["fingerprint"],
        "severity": "minor",
        "location": {"path": "50%, a:b/wrong.yaml", "lines": {"begin": 4}},
    }
    assert [entry["severity"] for entry in entries] == ["minor", "major", "major", "major"]
    assert len({entry["fingerprint"] for entry in entries}) == 4


def test_gitlab_wants_paths_without_a_dot_and_knows_a_finding_that_moved() -> None:
    told = [
        json.loads(formats.FORMATS["gitlab"](check([Content("./a.yaml", text.encode())], Wish(), known)))[0]
        for text in (CLAIM, f"# more\n{CLAIM}")
    ]
    assert [entry["location"] for entry in told] == [
        {"path": "a.yaml", "lines": {"begin": 10}},
        {"path": "a.yaml", "lines": {"begin": 11}},
    ]
    assert told[0]["fingerprint"] == told[1]["fingerprint"]


#: What SARIF 2.1.0 asks of the parts that are used here.
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": {"$ref": "#/$defs/run"}},
    },
    "additionalProperties": False,
    "$defs": {
        "message": {
            "type": "object",
            "required": ["text"],
            "properties": {"text": {"type": "string", "minLength": 1}},
            "additionalProperties": False,
        },
        "level": {"enum": ["none", "note", "warning", "error"]},
        "rule": {
            "type": "object",
            "required": ["id", "shortDescription", "fullDescription", "help", "defaultConfiguration"],
            "properties": {
                "id": {"type": "string"},
                "shortDescription": {"$ref": "#/$defs/message"},
                "fullDescription": {"$ref": "#/$defs/message"},
                "help": {"$ref": "#/$defs/message"},
                "defaultConfiguration": {"type": "object", "properties": {"level": {"$ref": "#/$defs/level"}}},
            },
            "additionalProperties": False,
        },
        "region": {
            "type": "object",
            "properties": {
                name: {"type": "integer", "minimum": 1} for name in ("startLine", "startColumn", "endLine", "endColumn")
            },
            "required": ["startLine"],
            "additionalProperties": False,
        },
        "location": {
            "type": "object",
            "required": ["physicalLocation"],
            "properties": {
                "physicalLocation": {
                    "type": "object",
                    "required": ["artifactLocation", "region"],
                    "properties": {
                        "artifactLocation": {
                            "type": "object",
                            "required": ["uri"],
                            "properties": {"uri": {"type": "string", "pattern": "^[!#-;=?-\\[\\]_a-z~]*$"}},
                            "additionalProperties": False,
                        },
                        "region": {"$ref": "#/$defs/region"},
                    },
                    "additionalProperties": False,
                },
                "logicalLocations": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"fullyQualifiedName": {"type": "string"}},
                        "additionalProperties": False,
                    },
                },
            },
            "additionalProperties": False,
        },
        "result": {
            "type": "object",
            "required": ["message", "ruleId", "ruleIndex", "level", "locations"],
            "properties": {
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": 0},
                "level": {"$ref": "#/$defs/level"},
                "message": {"$ref": "#/$defs/message"},
                "locations": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/location"}},
                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "additionalProperties": False,
        },
        "run": {
            "type": "object",
            "required": ["tool", "results"],
            "properties": {
                "tool": {
                    "type": "object",
                    "required": ["driver"],
                    "properties": {
                        "driver": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": {"const": "kerf"},
                                "version": {"type": "string"},
                                "rules": {"type": "array", "uniqueItems": True, "items": {"$ref": "#/$defs/rule"}},
                            },
                            "additionalProperties": False,
                        }
                    },
                },
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
            },
            "additionalProperties": False,
        },
    },
}


def test_sarif() -> None:
    log = json.loads(formats.FORMATS["sarif"](report()))
    Draft202012Validator.check_schema(SARIF)
    Draft202012Validator(SARIF).validate(log)
    (run,) = log["runs"]
    described = run["tool"]["driver"]["rules"]
    results = run["results"]
    assert [described[result["ruleIndex"]]["id"] for result in results] == [result["ruleId"] for result in results]
    assert [(r["ruleId"], r["level"]) for r in results] == [
        ("KERF-FILE-KEY", "warning"),
        ("KERF-SCHEMA-PATTERN", "error"),
        ("KERF-SCHEMA-TYPE", "error"),
        ("KERF-FILE-YAML", "error"),
    ]
    assert results[1]["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "50%25%2C%20a%3Ab/wrong.yaml"},
                "region": {"startLine": 7, "startColumn": 16, "endLine": 7, "endColumn": 19},
            },
            "logicalLocations": [{"fullyQualifiedName": "NodeClaim general-x7k2p: spec.expireAfter"}],
        }
    ]
    assert len({result["partialFingerprints"]["kerf/v1"] for result in results}) == len(results)


def test_sarif_of_nothing() -> None:
    log = json.loads(formats.FORMATS["sarif"](check([], Wish(), known)))
    Draft202012Validator(SARIF).validate(log)
    assert log["runs"][0]["results"] == []


def test_sarif_s_fingerprints_outlive_a_move() -> None:
    def prints(text: str) -> list[str]:
        found = check([Content("a.yaml", text.encode())], Wish(), known)
        (run,) = json.loads(formats.FORMATS["sarif"](found))["runs"]
        return [result["partialFingerprints"]["kerf/v1"] for result in run["results"]]

    assert prints(WRONG) == prints(f"# a line\n---\n{WRONG}")


@pytest.mark.parametrize(("strict", "failures"), [(False, 3), (True, 4)])
def test_junit(strict: bool, failures: int) -> None:
    root = ElementTree.fromstring(formats.FORMATS["junit"](report(strict=strict)))
    assert root.tag == "testsuites"
    assert root.attrib == {"name": "kerf validate", "tests": "3", "failures": "2"}
    cases = {(case.get("classname"), case.get("name")): case for case in root.iter("testcase")}
    wrong = ("50%, a:b/wrong.yaml", "NodeClaim general-x7k2p")
    assert set(cases) == {("clean.yaml", "NodeClaim general-clean"), wrong, ("<stdin>", "<stdin>")}
    assert len(list(root.iter("failure"))) == failures
    failure = cases[wrong].findall("failure")[-1]
    assert failure.get("type") == "KERF-SCHEMA-TYPE"
    assert (failure.text or "").startswith(
        "50%, a:b/wrong.yaml:12:14: error: spec.requirements[0].values[0]: true is a"
    )
    told = [(out.text or "").partition(" metadata")[0] for out in root.iter("system-out")]
    assert told == ([] if strict else ["50%, a:b/wrong.yaml:4:12: warning:"])


def test_junit_holds_no_character_that_xml_forbids() -> None:
    text = CLAIM.replace("general-x7k2p", '"a\\0b"')
    found = check([Content("a.yaml", text.encode())], Wish(), known)
    assert ElementTree.fromstring(formats.FORMATS["junit"](found)).find("testsuite") is not None


def test_the_command_knows_every_format() -> None:
    assert set(validate.FORMATS) == set(formats.FORMATS)
