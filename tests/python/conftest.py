"""What all tests share: plans do not depend on whether somebody has calibrated this machine."""

from __future__ import annotations

import os

os.environ["HETNN_CALIBRATION"] = "off"
os.environ["HETNN_TUNING"] = "off"
