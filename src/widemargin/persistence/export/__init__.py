"""Fitted models as programs for places without this package: ONNX graphs, NumPy functions, C functions."""
