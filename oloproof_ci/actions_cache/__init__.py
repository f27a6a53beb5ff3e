"""The Actions cache: stage results of earlier jobs, restored before a run and saved after it."""
