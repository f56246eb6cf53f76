from __future__ import annotations

import sys
from pathlib import Path

# Builders of histories that more than one folder of tests needs.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "histories"))
