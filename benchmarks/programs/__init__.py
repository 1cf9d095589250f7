"""The page docs/from/programs.md: what the programs of other systems print and write, beside what ours do.

`python -m benchmarks programs` makes it. Nothing is timed, so that the machine may be busy. Where an original program
is installed (Debian: libsvm-tools, liblinear-tools, libocas-tools) it runs on the same files; of SVM-light and SVM-Perf
there are recorded outputs, in the folder that WIDEMARGIN_ORIGINALS names.
"""
