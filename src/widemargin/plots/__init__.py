"""Plots of convergence histories and of grid searches."""
