"""`python -m oloproof` is the `oloproof` command."""

import sys

from oloproof.cli import main

if __name__ == "__main__":
    sys.exit(main())
