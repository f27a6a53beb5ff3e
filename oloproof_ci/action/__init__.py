"""The action: what a workflow's step runs, from its inputs and its event to an exit code."""
