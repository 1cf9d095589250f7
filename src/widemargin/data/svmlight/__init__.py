"""SVM-light / LIBSVM text: read, checked, written, in memory or in blocks, and LIBSVM's range files."""
