"""Cutting plane methods: svmperf and ocas, the planes they keep, and the reduced problem."""
