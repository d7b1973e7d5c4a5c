"""The device of vendor.c; the environment says where its library was built."""

from __future__ import annotations

import os

from hetnn.backends import Library


class Vendor(Library):
    """Takes relu."""

    path = os.environ.get("HETNN_TEST_VENDOR", "libvendor.so")
