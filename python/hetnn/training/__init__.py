"""Training with an executable: parameters are states that a run changes."""

from hetnn.training.history import History
from hetnn.training.step import TrainingStep, compile_training

__all__ = ["History", "TrainingStep", "compile_training"]
