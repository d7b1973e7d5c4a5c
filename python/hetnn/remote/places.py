"""Where devices stand that are behind a device server, as callers and target files say it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from hetnn.errors import InvalidModel


def places_of(
    devices: Mapping[str, Mapping[str, Any]] | str | os.PathLike[str] | None,
) -> dict[str, dict[str, Any]]:
    """The places, checked and whole; none for None."""
    if isinstance(devices, (str, os.PathLike)):
        from hetnn.target import places_in

        path, devices = devices, places_in(devices)
        if not devices:
            raise InvalidModel(f"target '{path}' does not say where a device stands, as 'at' in its row of devices.")
    if not devices:
        return {}
    from hetnn.remote.client import check_place

    return {name: check_place(name, place) for name, place in devices.items()}


def sent_to(places: Mapping[str, Mapping[str, Any]]) -> dict[str, Callable[[bytes], tuple[str, int, bytes]]]:
    """By device, what makes code of the image of a subprogram that runs there."""
    if not places:
        return {}
    from hetnn.remote.client import KIND, code_elsewhere

    return {
        name: lambda image, place=place: (KIND, 1, code_elsewhere(place, image))  # type: ignore[misc]
        for name, place in places.items()
    }
