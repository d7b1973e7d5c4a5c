"""Conditions that a model's author or torch put into the program: a run in which one does not hold ends."""

from __future__ import annotations

import re
from typing import Any

import sympy

from hetnn._core import Dim
from hetnn.errors import InvalidModel
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.torch.rules.call import Call, rule

CONDITIONS = {
    "aten._assert_async.default",
    "aten._assert_async.msg",
    "aten._functional_assert_async.msg",
    "aten._assert_scalar.default",
    "aten._functional_assert_scalar.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
}

# Around an expression; what the author of a model writes has none.
_TORCHS_WORDS = re.compile(r"Runtime assertion failed for expression (.*) on node '.*'")


@rule("_assert_async.default", "_assert_async.msg", "_functional_assert_async.msg")
def _values(call: Call) -> Any:
    # Functional forms give a token, which the next one takes.
    values_must_hold(call, call["self"], call.args.get("assert_msg"))
    return call.args.get("dep_token")


@rule("_assert_scalar.default", "_functional_assert_scalar.default")
def _scalar(call: Call) -> Any:
    expr = call.expression("self")
    if expr == sympy.false:
        raise InvalidModel(f"it does not hold for any input: {call['assert_msg']}")
    if expr not in (sympy.true, None):
        _require(call, expr, _TORCHS_WORDS.sub(r"\1", call["assert_msg"]))
    return call.args.get("dep_token")


@rule("sym_constrain_range.default", "sym_constrain_range_for_size.default")
def _range(call: Call) -> None:
    expr, low, high = call.expression("size"), call["min"], call["max"]
    if expr is None:
        return
    if low is not None:
        _require(call, sympy.Ge(expr, low), f"{expr} >= {low}")
    if high is not None:
        _require(call, sympy.Le(expr, high), f"{expr} <= {high}")


def _require(call: Call, expr: Any, text: str) -> None:
    if expr == sympy.true or not call.is_known(expr):
        return
    try:
        holds: Size | None = call.truth(expr)
    except InvalidModel:  # longer than a size may be
        holds = None
    if isinstance(holds, Dim):
        call.create("require_sizes", [], holds=[holds], demand=text.replace(";", ","))
    elif holds is None or holds == 0:
        call.create("require", [call.cast(call.number_of(expr), "bool")], demand=text)


def values_must_hold(call: Call, values: Any, text: str | None = None) -> None:
    """Has a run end where a value is 0."""
    call.create("require", [call.cast(values, "bool")], demand=text or "no value is 0")
