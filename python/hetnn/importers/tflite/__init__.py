"""TFLite models: read without TensorFlow, by the schema in the package `tflite`."""
