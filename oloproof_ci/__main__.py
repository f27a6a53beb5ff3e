"""`python -m oloproof_ci`, the same as `oloproof-ci`."""

import sys

from oloproof_ci.cli import main

sys.exit(main())
