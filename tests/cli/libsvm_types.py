"""LIBSVM's types of machines, for the tests of `widemargin train -s`."""

MACHINES = {  # name: (options, fixture of the data)
    "C-SVC": ("-s 0", "two"),
    "C-SVC of three": ("-s 0 -c 10", "three"),
    "nu-SVC": ("-s 1 -n 0.3", "two"),
    "nu-SVC of three": ("-s 1 -n 0.3", "three"),
    "one-class": ("-s 2 -n 0.3", "two"),
    "epsilon-SVR": ("-s 3 -p 0.2", "slope"),
    "nu-SVR": ("-s 4 -n 0.3 -c 2", "slope"),
}
