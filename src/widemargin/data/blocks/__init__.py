"""Row-block files: data larger than memory, as Arrow files that are read block by block."""
