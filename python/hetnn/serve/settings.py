"""What clients set of traces and logs, for the server and for each network, as the protocol's extensions have it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from hetnn import _store
from hetnn.errors import InvalidModel, Unsupported
from hetnn.serve.runner import Job, Result

_TRACE = {
    "trace_file": "",
    "trace_level": ["OFF"],
    "trace_rate": "1000",
    "trace_count": "-1",
    "log_frequency": "0",
    "trace_mode": "triton",
}
_LOG: dict[str, Any] = {
    "log_file": "",
    "log_info": True,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}


class Settings:
    """Of one worker. A network without settings of its own has the server's, which stand under the name ''."""

    def __init__(self) -> None:
        self._trace: dict[str, dict[str, Any]] = {"": dict(_TRACE)}
        self._log = dict(_LOG)
        self._changed = False

    def state(self) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
        """For another worker's `restore`."""
        return self._trace, self._log

    def restore(self, state: tuple[dict[str, dict[str, Any]], dict[str, Any]]) -> None:
        """Takes over the settings of traces and logs that clients changed before this worker began."""
        self._trace, self._log = dict(state[0]), dict(state[1])
        self._changed = True

    def trace(self, name: str) -> dict[str, Any]:
        """The trace settings of a network, or of all where the name is empty."""
        settings = {**self._trace[""], **self._trace.get(name, {})}
        return {key: settings[key] for key in _TRACE}

    def is_traced(self, name: str) -> bool:
        """Whether a line is written for requests of a network."""
        if not self._changed:
            return False
        scope = self._trace[name if name in self._trace else ""]
        return bool(scope.get("trace_level", self._trace[""]["trace_level"]) != ["OFF"])

    def change_trace(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Changes trace settings and returns them all; null or an empty list takes one back.

        InvalidModel for a key or a value that is none, Unsupported for those of files.
        """
        if name:
            _store.check_id(name)
        changed = dict(self._trace.get(name, {}))
        for key, value in settings.items():
            if key not in _TRACE:
                raise InvalidModel(f"there is no trace setting '{key:.100}'; there are {', '.join(_TRACE)}.")
            if key in ("trace_file", "trace_mode"):
                raise Unsupported(f"the trace setting '{key}' cannot be changed by clients.")
            if value is None or value == []:
                changed.pop(key, None)
                if not name:
                    changed[key] = _TRACE[key]
                continue
            texts = [str(one) for one in value] if isinstance(value, list) else [str(value)]
            if key == "trace_level":
                if not set(texts) <= {"OFF", "TIMESTAMPS", "TENSORS"}:
                    raise InvalidModel(f"trace_level takes OFF, TIMESTAMPS and TENSORS; got {texts!r:.100}.")
                changed[key] = texts
            else:
                if not (texts[0].lstrip("-").isdecimal() and len(texts) == 1):
                    raise InvalidModel(f"{key} must be a number; got {value!r:.100}.")
                changed[key] = texts[0]
        self._trace[name] = changed
        self._changed = True
        return self.trace(name)

    def write_trace(self, job: Job, result: Result) -> None:
        """A line on stderr for a request that is traced."""
        request = job.request
        settings = self.trace(request.model)
        scope = self._trace[request.model if request.model in self._trace else ""]
        seen = scope["seen"] = int(scope.get("seen", 0)) + 1
        if seen % max(int(settings["trace_rate"]), 1) != 0:
            return
        count = int(settings["trace_count"])
        if count == 0:
            return
        if count > 0:
            scope["trace_count"] = str(count - 1)
        row = {
            "model": request.model,
            "version": job.runner.version,
            "id": request.id,
            "request_start_ns": job.begun_ns,
            "compute_start_ns": result.started_ns,
            "compute_end_ns": result.started_ns + result.run_ns,
            "request_end_ns": time.perf_counter_ns(),
        }
        sys.stderr.write(f"trace {json.dumps(row)}\n")

    def log(self) -> dict[str, Any]:
        """The log settings."""
        return dict(self._log)

    def change_log(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Changes log settings and returns them all.

        InvalidModel for a key or a value that is none, Unsupported for `log_file`.
        """
        for key, value in settings.items():
            if key not in _LOG:
                raise InvalidModel(f"there is no log setting '{key:.100}'; there are {', '.join(_LOG)}.")
            if key == "log_file":
                raise Unsupported("the log setting 'log_file' cannot be changed by clients.")
            if type(value) is not type(_LOG[key]):
                raise InvalidModel(f"{key} must be {type(_LOG[key]).__name__}; got {value!r:.100}.")
            if key == "log_format" and value not in ("default", "ISO8601"):
                raise InvalidModel(f"log_format must be default or ISO8601; got {value!r:.100}.")
        self._log |= settings
        return dict(self._log)
