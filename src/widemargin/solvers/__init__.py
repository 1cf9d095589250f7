"""How it is minimised: one algorithm per file; solvers know shapes, never tasks."""
