"""The errors hetnn raises. Their text names what was found, what was expected and what to do."""

from __future__ import annotations

import re

_LOCATION = re.compile(r"^\s+at (?P<where>\S.*)$", re.MULTILINE)


class Error(Exception):
    """Root of every error hetnn raises on purpose."""

    @property
    def kind(self) -> str:
        """The name of the kind, as the command line prints it."""
        return type(self).__name__

    @property
    def where(self) -> str | None:
        """The place in the model or the file that the text ends with (`  at resnet.py:88`), where it names one."""
        found = _LOCATION.findall(str(self))
        return found[-1] if found else None


class InvalidModel(Error, ValueError):
    """The model, the problem, the file or an argument is wrong."""


class Unsupported(Error, NotImplementedError):
    """Something valid that hetnn or the target cannot do."""


class DoesNotFit(Error, MemoryError):
    """Something that exceeds a memory or a budget."""


class Unavailable(Error, RuntimeError):
    """What could be done but not now: more runs than are let in, a deadline that passed, a device that is gone."""


class InternalError(Error):
    """A bug in hetnn: the text names the file and line that noticed it."""
