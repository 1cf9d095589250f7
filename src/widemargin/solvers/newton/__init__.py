"""Newton's method: on smoothed losses for many rows, and with an active set for small problems."""
