"""What of a store still counts: which files and cases its results were made from, and what a run would make again."""
