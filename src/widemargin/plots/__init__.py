"""Pictures of fits and grids."""
