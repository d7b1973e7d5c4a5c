"""Quantizing: from a model and samples of its inputs to a model that computes in fewer bits (docs/quantize.md)."""
