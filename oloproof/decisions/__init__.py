"""From metrics to decisions: the state of each rule and the gate. Pure functions of records."""
