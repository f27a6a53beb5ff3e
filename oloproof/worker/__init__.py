"""Where the user's code runs: one child process a checkout, and the engine's side of the pipe to it."""
