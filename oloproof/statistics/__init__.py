"""Intervals of metrics, and how their figures are printed."""
