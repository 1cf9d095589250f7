"""Kernel machines: SVC, NuSVC, SVR, NuSVR, OneClassSVM, TransductiveSVC."""
