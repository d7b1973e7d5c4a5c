"""Training with an executable: parameters are states that a run changes."""

from hetnn.training.step import TrainingStep, compile_training

__all__ = ["TrainingStep", "compile_training"]
