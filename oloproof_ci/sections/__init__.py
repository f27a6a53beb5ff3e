"""The parts of the pull-request comment, one a module: pure functions from the report to markdown."""
