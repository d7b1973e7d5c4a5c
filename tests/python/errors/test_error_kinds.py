"""The kinds of errors: what they derive from, and the place they name."""

from __future__ import annotations

import pickle

import pytest

import hetnn


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (hetnn.InvalidModel, ValueError),
        (hetnn.Unsupported, NotImplementedError),
        (hetnn.DoesNotFit, MemoryError),
    ],
)
def test_each_kind_is_also_the_builtin_that_fits(kind: type[hetnn.Error], builtin: type[Exception]) -> None:
    assert issubclass(kind, hetnn.Error)
    assert issubclass(kind, builtin)
    assert kind("text").kind == kind.__name__


def test_an_internal_error_is_no_user_error() -> None:
    assert not issubclass(hetnn.InternalError, (ValueError, NotImplementedError, MemoryError))


def test_where_is_the_last_place_the_text_names() -> None:
    text = "conv2d 'layer1.0.conv1': weight must have 4 channels; got 3. Check the input.\n  at resnet.py:88"
    assert hetnn.InvalidModel(text).where == "resnet.py:88"
    assert hetnn.InvalidModel("nothing at all").where is None


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(hetnn.DoesNotFit("needs 5 bytes\n  at a.py:1")))
    assert (type(error), str(error), error.where) == (hetnn.DoesNotFit, "needs 5 bytes\n  at a.py:1", "a.py:1")


def test_a_name_that_is_not_there_lists_those_that_are() -> None:
    with pytest.raises(AttributeError, match=r"module 'hetnn' has no attribute 'complie'; it has .*compile"):
        _ = hetnn.complie
