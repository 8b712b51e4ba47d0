"""What an error of the library must look like: it says what came, what was expected, what to do."""

import re

import pytest

from labelfree import LabelfreeError


def refused(call, *words, error=LabelfreeError):
    """Check that `call` is refused in one line that holds all the words; return the line."""
    with pytest.raises(error) as caught:
        call()
    said = str(caught.value)
    check_sentence(said)
    missing = [word for word in words if word not in said]
    assert not missing, said
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return said


def check_sentence(said):
    assert said == said.strip()
    assert "\n" not in said
    assert said.endswith(".")
    assert not said.endswith("..")
    assert re.search(r"[;.] \w|must .*, got ", said), said  # what is wrong; what to do
