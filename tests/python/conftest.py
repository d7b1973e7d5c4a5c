"""What all tests share: plans do not depend on who has calibrated this machine, and graphs are verified after passes."""

from __future__ import annotations

import os

os.environ["HETNN_CALIBRATION"] = "off"
os.environ["HETNN_TUNING"] = "off"
os.environ["HETNN_VERIFY"] = "1"
