"""Searches of ONNX Runtime that run a decoder for each word: the decoder's feeds, the scores of words, the choice."""

from hetnn.importers.onnx.rules.generation import beams, greedy, sampling

__all__ = ["beams", "greedy", "sampling"]
