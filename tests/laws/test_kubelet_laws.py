"""Whatever somebody writes for an expression: it has a value, or there are words why not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerf_api.kubelet import expressions
from kerf_api.kubelet.expressions import MOST_CHARACTERS, PLAIN, ExpressionError

_NAMES = (*PLAIN, "min", "max", "int", "double", "string", "size", "startsWith", "has", "map", "exists", "null")
_SIGNS = (*"+-*/%()[]{}.,?:!<=>&|'\"\\ \n@`_u", "&&", "||", "==", " in ", "//", "r'", "b'", "é", "\x00")
_WORDS = (*_NAMES, *_SIGNS, "0", "1", "2.5", "1e308", "9223372036854775807", "'m5'")
TEXTS = st.lists(st.sampled_from(_WORDS), max_size=25).map("".join) | st.text(max_size=40)
#: Short pieces, again and again: what is nested, or long.
REPEATED = st.tuples(TEXTS, st.sampled_from(_WORDS), st.integers(1, 600)).map(lambda t: t[0] + t[1] * t[2])


@given(text=TEXTS | REPEATED)
def test_every_text_has_a_value_or_words_why_not(text: str) -> None:
    found = expressions.problem(text)
    try:
        value = expressions.value(text, PLAIN)
        words = ""
    except ExpressionError as error:
        value, words = 0, str(error)
    assert isinstance(value, int)
    assert -(2**63) <= value < 2**63
    assert found is None or words
    assert words or len(text) <= MOST_CHARACTERS


@pytest.mark.parametrize("piece", ["1+", "-", "!", "[", "(", "{1:", "vcpus?1:", "a.", "min(1,", "1<", "true&&", "[0]"])
def test_no_text_that_is_short_enough_is_too_deep_for_the_machine(piece: str) -> None:
    """It would end the process, not only the look."""
    for end in ("1", "]", "true", ""):
        text = (piece * MOST_CHARACTERS)[: MOST_CHARACTERS - len(end)] + end
        expressions.problem(text)
