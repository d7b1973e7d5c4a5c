"""The rule is one of those that users see and may switch off."""

from hetnn import _core

assert "floor_twice" in {rule["name"] for rule in _core.rules()}
