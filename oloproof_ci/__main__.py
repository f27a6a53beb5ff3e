"""`python -m oloproof_ci`, the same as `oloproof-ci`."""

import os
import sys

# `python -m` looks into the folder that it is called in first: there a project's modules stand in the place of others.
if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]

from oloproof_ci.cli import main

sys.exit(main())
