"""What holds for all tests."""

from __future__ import annotations

import os

# Workers are to keep bytecode as they do on any machine, whatever this shell has been told.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
