"""`python -m oloproof` is the `oloproof` command."""

import os
import sys

# `python -m` looks into the folder that it is called in first: there a project's modules stand in the place of others.
if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]

from oloproof.cli import main

if __name__ == "__main__":
    sys.exit(main())
