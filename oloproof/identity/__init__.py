"""What makes a stored result valid: digests of everything that could change it, and of nothing else."""
