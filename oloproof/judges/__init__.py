"""Judges: models that read an answer and say whether it meets a criterion."""
