"""What torch held open sizes to when it exported a program: conditions that every run must fulfil, as torch checks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from hetnn._core import Dim
from hetnn.errors import InvalidModel
from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.torch.symbols import RELATIONS

_ARITHMETIC: dict[type[ast.operator], Callable[[Size, Size], Size]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: sizes.divide,
    ast.Mod: sizes.modulo,
}
_COMPARISONS = {
    ast.Eq: RELATIONS["Equality"],
    ast.NotEq: RELATIONS["Unequality"],
    ast.Lt: RELATIONS["StrictLessThan"],
    ast.Gt: RELATIONS["StrictGreaterThan"],
    ast.LtE: RELATIONS["LessThan"],
    ast.GtE: RELATIONS["GreaterThan"],
}
_FUNCTIONS: dict[str, Callable[[Size, Size], Size]] = {
    "CleanDiv": sizes.divide,
    "FloorDiv": sizes.divide,
    "Max": sizes.maximum,
    "Min": sizes.minimum,
    "Mod": sizes.modulo,
    "PythonMod": sizes.modulo,
    "max": sizes.maximum,
    "min": sizes.minimum,
}


def conditions(
    exported: ExportedProgram, program: ExportedProgram, names: list[str], dim: Callable[[Any], Size]
) -> list[tuple[str, Size]]:
    """Each condition of the program as it was exported: its text, and a size that is 1 where it holds, else 0.

    `program` is what became of it, `names` are those of its positional arguments. An equation of reals is one of the
    sizes in it with those of the example; what else has no form in sizes is left out, and so is that torch has a way of
    its own for one element or none.
    """
    texts: list[str] = getattr(exported, "_guards_code", None) or []
    if not texts:
        return []
    placeholders = {node.name: node.meta.get("val") for node in program.graph.find_nodes(op="placeholder")}
    leaves = [placeholders.get(name) if isinstance(name, str) else name for name in program.graph_signature.user_inputs]
    given, seen = (_arguments(exported, names, [_leaf(leaf, of) for leaf in leaves]) for of in (dim, _example))
    found: list[tuple[str, Size]] = []
    for text in texts:
        tree = ast.parse(text.replace("\n", " ").strip(), mode="eval").body
        try:
            if _is_of_few(tree, given):
                continue
            holds = _read(tree, given)
        except (LookupError, TypeError):
            holds = _as_in_the_example(tree, given, seen)
        except InvalidModel:  # longer than a size may be
            continue
        if isinstance(holds, Dim):
            found.append((ast.unparse(tree).replace("L['", "").replace("']", ""), holds))
    return found


def _is_of_few(node: ast.expr, given: Mapping[str, Any]) -> bool:
    """Whether a condition says that there are two elements or more: a >= 2, or that what is no axis by itself, of which
    a model may well ask it, is not 0 or 1."""
    match node:
        case ast.Compare(ops=[ast.GtE()], comparators=[ast.Constant(value=2)]):
            return True
        case ast.Compare(left=ast.Subscript() as axis, ops=[ast.NotEq()], comparators=[ast.Constant()]):
            return not getattr(_read(axis, given), "name", None)
        case ast.Compare(ops=[ast.NotEq()], comparators=[ast.Constant(value=0 | 1)]):
            return True
    return False


def _leaf(value: Any, of: Callable[[Any], Any]) -> Any:
    return [of(size) for size in value.shape] if isinstance(value, torch.Tensor) else of(value)


def _example(size: Any) -> Any:
    if isinstance(size, torch.SymInt):
        return size.node.hint if size.node.has_hint() else None
    return size


def _arguments(exported: ExportedProgram, names: list[str], leaves: list[Any]) -> dict[str, Any]:
    """By their names; those of `*rest`, rest_0, rest_1, ... there, are rest[0], rest[1], ... in conditions."""
    args, kwargs = pytree.tree_unflatten(leaves, exported.call_spec.in_spec)
    named = dict(zip(names, args, strict=False))
    rest: dict[str, Any] = {}
    for name, value in named.items():
        whole, _, place = name.rpartition("_")
        if place.isdecimal():
            rest.setdefault(whole, {})[int(place)] = value
    return {**rest, **named, **kwargs}


def _read(node: ast.expr, given: Mapping[str, Any]) -> Any:
    """The size, or the truth, that an expression is. LookupError or TypeError for what sizes cannot say."""
    match node:
        case ast.Constant(value=int(number)):
            return int(number)
        case ast.Name(id="L"):
            return given
        case ast.Subscript(value=whole, slice=ast.Constant(value=key)):
            return _read(whole, given)[key]
        case ast.Call(func=ast.Attribute(value=tensor, attr="size"), args=[]):
            return _read(tensor, given)
        case ast.Call(func=ast.Name(id=name), args=args):
            return reduce(_FUNCTIONS[name], [_size(arg, given) for arg in args])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_size(operand, given)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return sizes.denied(_size(operand, given))
        case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int(power))) if power >= 0:
            return sizes.product([_size(base, given)] * power)
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](_size(left, given), _size(right, given))
        case ast.Compare(left=first, ops=ops, comparators=others):
            values = [_size(part, given) for part in (first, *others)]
            compared = [_COMPARISONS[type(op)](a, b) for op, a, b in zip(ops, values, values[1:], strict=False)]
            return reduce(sizes.minimum, compared)
        case ast.BoolOp(op=op, values=parts):
            joined = sizes.minimum if isinstance(op, ast.And) else sizes.maximum
            return reduce(joined, [_size(part, given) for part in parts])
    raise TypeError(ast.unparse(node))


def _size(node: ast.expr, given: Mapping[str, Any]) -> Size:
    found = _read(node, given)
    if not isinstance(found, (int, Dim)):
        raise TypeError(ast.unparse(node))
    return found


def _as_in_the_example(node: ast.expr, given: Mapping[str, Any], seen: Mapping[str, Any]) -> Size | None:
    if not (isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq)):
        return None
    try:
        parts = [part for part in ast.walk(node) if isinstance(part, ast.Subscript) and ".size()" in ast.unparse(part)]
        pairs = [(_size(part, given), _size(part, seen)) for part in parts]
    except (LookupError, TypeError):
        return None
    same = [sizes.equal(size, example) for size, example in pairs]
    return reduce(sizes.minimum, same) if same else None
