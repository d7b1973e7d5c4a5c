"""Training with an executable: parameters are states that a run changes."""

from hetnn.training.compile import compile_training
from hetnn.training.history import History
from hetnn.training.step import TrainingStep

__all__ = ["History", "TrainingStep", "compile_training"]
