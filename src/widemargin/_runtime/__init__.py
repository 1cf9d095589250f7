"""What the package stands on: compilation, threads, registers, files that are replaced whole, warnings, progress."""
