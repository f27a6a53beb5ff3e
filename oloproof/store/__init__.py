"""The SQLite store under `.oloproof/`: stage results, judgments, and the records of runs."""
