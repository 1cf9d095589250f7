"""Decomposition methods for kernel machines: svmlight and smo, and what they share."""
