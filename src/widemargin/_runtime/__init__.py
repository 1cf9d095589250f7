"""Infrastructure without mathematics: compilation, threads, SIMD registers, atomic file writes, warnings, progress."""
