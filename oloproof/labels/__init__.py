"""Labels: what people said of the answers that a judge reads, and how the judge compares."""
