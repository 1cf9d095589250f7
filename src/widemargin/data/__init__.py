"""The data: matrices in memory, their statistics and scaling, and SVM-light / LIBSVM text files."""
