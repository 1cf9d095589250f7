"""The demonstration: five machines on rows that are made up on the spot, each beside scikit-learn."""
