"""One user's states of a model that keeps any: what an executable's `session()` gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hetnn.states import read_states, write_states

if TYPE_CHECKING:
    from hetnn import _runtime
    from hetnn.arrays import Array
    from hetnn.executable import Executable


class Session:
    """One user's states of a model that keeps any. Runs of a session happen one after another."""

    def __init__(self, executable: Executable, states: _runtime.Session) -> None:
        self._executable = executable
        self._states = states

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """As a call of the executable, on these states."""
        passed = self._executable._arguments.passed(inputs, named)
        return self._executable._arguments.returned(passed, self.run(passed))

    def run(self, inputs: Sequence[Any], out: Sequence[Any] | None = None, *, overlap: bool = True) -> list[Any]:
        """As Executable.run, on these states."""
        return self._executable.run(inputs, out, session=self, overlap=overlap)

    def reset(self) -> None:
        """Gives every state its initial value again."""
        self._states.reset()

    def state_dict(self) -> dict[str, Array]:
        """As Executable.state_dict, of these states."""
        return read_states(self._executable.states, self._states)

    def load_state_dict(self, states: Mapping[str, Any]) -> None:
        """As Executable.load_state_dict, of these states."""
        write_states(self._executable.states, self._states, states)
