"""What people import: scikit-learn estimators, and the files that keep them."""
