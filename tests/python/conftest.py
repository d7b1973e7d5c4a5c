"""What all tests share: plans that no calibration of this machine changes, graphs verified after every pass."""

from __future__ import annotations

import os

os.environ["HETNN_CALIBRATION"] = "off"
os.environ["HETNN_TUNING"] = "off"
os.environ["HETNN_VERIFY"] = "1"
