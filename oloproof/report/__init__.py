"""Records as text for a terminal. Pure functions: a record goes in, lines come out."""
