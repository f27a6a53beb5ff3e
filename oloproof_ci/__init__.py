"""Oloproof CI: runs the engine on a pull request's head and base, and says what came of it."""
