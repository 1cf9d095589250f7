"""The words of the page."""

INTRODUCTION = (
    "# Fits on a Dask cluster\n\n"
    "Made by `python -m benchmarks run cluster`, on one machine: all workers, the scheduler and the client share its "
    "cores.\n\n"
    "![A killed worker, and the cost model](../../docs/cluster.png)"
)
SECTIONS = {
    "local": (
        "Two processes of one thread against one process of two",
        "`widemargin.dask.LinearSVC` on a LocalCluster of two processes with one thread each, against the "
        "ordinary estimator with two threads in one process. Hinge loss, no intercept, C = 0.01 (of the sum of "
        "losses), to a certified relative gap of 10⁻³; three fits of each, in turns, after one that "
        "compiles. Covertype, standardised, float32, is in the memory of both; the splice stand-in is read by "
        "both from the same files, which the system has cached. *Building* is the time until the partitions are "
        "checked and the first pass has been made; it is part of the seconds and of the ratio, which is the median of "
        "the ratios of fits that followed each other. Goals: a ratio "
        "of at most 1.3, and at most 30 ms of a trip beyond its slowest task.",
    ),
    "bits": (
        "The same bits",
        "Covertype, 581,012 rows in 7 blocks, C = 0.01, to a relative gap of 10⁻⁷. The objective is compared "
        "with that of the ordinary estimator in memory (goal: 10⁻⁶); *bits* is a hash of all weights and of the "
        "intercept.",
    ),
    "killed": (
        "Killed workers",
        "Three workers, covertype twice in 12 blocks, to a relative gap of 10⁻⁷. One worker, chosen at random, "
        "is killed (kill -9) at a moment chosen at random from the first 95% of the time that the fit takes "
        "undisturbed. The cost is the time beyond the undisturbed one; it includes the start of a new worker on "
        "the same two cores.",
    ),
    "peers": (
        "Spark and dask-ml",
        "Covertype, 581,012 rows, hinge loss, no intercept. The optimum is certified to 10⁻⁷. Spark MLlib's "
        "LinearSVC runs with local[2], rows cached, without standardisation, regParam = 1 / (C n); its fits are "
        "repeated with 10, 20, 30, 50, 100, 200 and 300 iterations, and the first that is within 10⁻³ of the "
        "optimum counts. "
        'dask-ml has no SVM; `Incremental(SGDClassifier(loss="hinge"))` is the nearest, on two workers, for 15 '
        "seconds. The ratio is the time to be within 10⁻³, or all of its time, divided by that of our fit on "
        "two workers.",
    ),
    "costs": (
        "What a trip costs",
        "Measured with tasks that do nothing, through the same `Group` as a fit, on the loopback address: the "
        "scheduler is one process, the workers are in two, the client is another, and all share two cores. A "
        "trip of W tasks takes a + b W, and for each byte that is sent to, or returns from, each worker, c W or "
        "e W more. The processor time of the workers is spent on their own machines in a real cluster.",
    ),
    "check": (
        "The model against sleeping workers",
        "The trips of the measured fit of covertype are repeated on simulated clusters, two million rows for "
        "each worker: each task sleeps as long as the pass over its rows takes, receives as many bytes, and "
        "returns as many. The costs were measured with up to 20 workers.",
    ),
    "model": (
        "Predicted fits on large clusters",
        "The same fit, with as many trips, on workers of one thread. Seconds = time per row × rows / workers + "
        "latency of all trips, with b the processor time of client and scheduler only. † the rows of a worker "
        "take more than 64 GB, so that they would be read from a disk in each pass, which is not in the model. "
        "Each worker returns as many bytes as in the measured fit; the sample for the warm start has a fixed size.\n\n"
        "Where the design ends: the client submits a task to each worker, the scheduler answers for each, and "
        "the sums of all workers come to the client, in every trip. All three grow with the number of workers, "
        "and the time of the rows falls with it, so that more workers than about the square root of (time of "
        "all rows / b) make a fit slower. A Gram matrix of d columns has 8 d² bytes: with 54 columns 23 kB from "
        "each worker, with 564 columns 2.5 MB, 2.5 GB from 1,000 workers. For 10,000 workers, the sums must be "
        "made by a tree of tasks on the workers, so that the client receives one result and not 10,000; the "
        "command must reach them by a tree as well, or as one graph instead of one submission for each task; "
        "and the list of workers must be kept from the scheduler's messages, not asked for in each trip. The "
        "order of the sums is that of a fixed binary tree already, so that the bits of the model would stay the "
        "same.",
    ),
}
