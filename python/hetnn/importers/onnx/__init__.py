"""From ONNX models to graphs."""
