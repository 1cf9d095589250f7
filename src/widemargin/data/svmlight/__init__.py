"""SVM-light / LIBSVM text: reading, checking and writing, as a whole or in blocks, and LIBSVM's range files."""
