"""Proximal Newton methods: problems whose penalty makes weights zero."""
