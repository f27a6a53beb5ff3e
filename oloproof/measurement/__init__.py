"""From judgments to metrics and slices."""
