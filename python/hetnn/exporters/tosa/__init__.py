"""Integer graphs as TOSA 1.0 files: `export`, and what of a graph TOSA has no form for."""

from hetnn.exporters.tosa.model import FORMS, Form, export, refusal, unsupported, write

__all__ = ["FORMS", "Form", "export", "refusal", "unsupported", "write"]
