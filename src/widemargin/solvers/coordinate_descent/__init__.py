"""Dual coordinate descent: the state and the loop that the methods share, and the methods."""
