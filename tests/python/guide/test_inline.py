"""Calls that the guide writes within sentences can be made as they stand."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hetnn

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
INLINE = re.compile(r"(?<!`)`((?:exe|plan|hetnn)\.[^`\n]+)`(?!`)")
HOMES: dict[str, Any] = {"exe": hetnn.Executable, "plan": hetnn.Plan, "hetnn": hetnn}


def calls(text: str) -> Iterator[tuple[str, str, ast.Call]]:
    """Of a name that the guide has for an executable, a plan or the package: that name, what is called, the call."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return  # words around a name
    for node in ast.walk(tree):
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id in HOMES:
            assert isinstance(node, ast.Call)
            yield function.value.id, function.attr, node


def test_their_names_are_there_and_take_what_is_written() -> None:
    seen = 0
    for page in PAGES:
        for text in INLINE.findall(page.read_text(encoding="utf-8")):
            for home, name, call in calls(text):
                seen += 1
                function = getattr(HOMES[home], name, None)
                assert function is not None, f"{page.name}: `{text}`: there is no {home}.{name}"
                written = [one for one in call.args if not (isinstance(one, ast.Constant) and one.value is ...)]
                given = [None] * (len(written) + (home != "hetnn"))
                keywords = {word.arg: None for word in call.keywords if word.arg}
                try:
                    inspect.signature(function).bind_partial(*given, **keywords)
                except TypeError as error:
                    pytest.fail(f"{page.name}: `{text}`: {error}")
    assert seen > 40
