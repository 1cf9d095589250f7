"""Model files: our own, LIBSVM's, LIBLINEAR's and SVM-light's."""
