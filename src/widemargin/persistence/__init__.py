"""Model files in the package's own format and in those of LIBSVM, LIBLINEAR and SVM-light."""
