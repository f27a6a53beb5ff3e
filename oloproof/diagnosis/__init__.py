"""Why cases fail: re-execution under controlled changes, and the label that the evidence supports."""
