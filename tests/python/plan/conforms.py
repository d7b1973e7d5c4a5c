"""The part of JSON Schema that the schemas in docs/ use."""

from __future__ import annotations

from typing import Any

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "null": (type(None),),
}


def assert_conforms(value: Any, schema: dict[str, Any], place: str = "plan") -> None:
    """Fails naming the place in `value` that the schema does not allow."""
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kinds = tuple(kind for name in names for kind in _KINDS[name])
    assert isinstance(value, kinds), f"{place} is a {type(value).__name__}"
    assert value in schema.get("enum", [value]), place
    if isinstance(value, dict):
        for key in schema.get("required", []):
            assert key in value, f"{place} lacks {key}"
        others = schema.get("additionalProperties", True)
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key, others)
            assert inner is not False, f"{place} has {key}, which the schema does not know"
            if inner is not True:
                assert_conforms(item, inner, f"{place}.{key}")
    if isinstance(value, list):
        for k, item in enumerate(value):
            assert_conforms(item, schema["items"], f"{place}[{k}]")
