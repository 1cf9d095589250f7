"""Model selection: grids, paths along C, cross-validation."""
