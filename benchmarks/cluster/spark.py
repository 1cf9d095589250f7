"""Spark MLlib's LinearSVC, for `benchmarks.cluster.peers`: runs in an environment of its own that has pyspark.

The task is read as JSON: a Parquet file of rows, the same rows as arrays, and numbers of iterations. Spark minimises
mean max(0, 1 − y <w, x>) + regParam / 2 |w|². Each number of iterations is a fit from the beginning; the last one is
that whose objective, computed here, is at most the target.
"""

import json
import os
import platform
import sys
import time

import numpy as np
import pyspark
from pyspark.ml.classification import LinearSVC
from pyspark.ml.functions import array_to_vector
from pyspark.sql import SparkSession
from pyspark.sql.functions import col


def main():
    task = json.load(sys.stdin)
    session = (
        SparkSession.builder.master(f"local[{task['threads']}]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", task["threads"])
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    begun = time.perf_counter()
    rows = session.read.parquet(task["path"])
    rows = rows.select(array_to_vector(col("features")).alias("features"), "label")
    rows = rows.repartition(task["threads"]).cache()
    n_rows = rows.count()
    reading = time.perf_counter() - begun
    svc = LinearSVC(fitIntercept=False, standardization=False, tol=0.0, aggregationDepth=2)
    svc.setRegParam(task["penalty"]).setMaxIter(2).fit(rows)  # the Java compiler is warm
    X, y, curve = np.load(task["rows"], mmap_mode="r"), np.load(task["signs"]), []
    for n in task["iterations"]:
        begun = time.perf_counter()
        w = svc.setMaxIter(n).fit(rows).coefficients.toArray()
        curve.append([n, time.perf_counter() - begun, w.tolist()])
        if np.maximum(0.0, 1.0 - y * (X @ w)).mean() + 0.5 * task["penalty"] * (w @ w) <= task["target"]:
            break
    java = session.sparkContext._jvm.System.getProperty("java.version")
    session.stop()
    words = f"pyspark {pyspark.__version__}, Java {java}, Python {platform.python_version()}"
    return {"curve": curve, "reading": reading, "rows": n_rows, "versions": words}


if __name__ == "__main__":
    found = main()
    os.write(1, ("\n" + json.dumps(found) + "\n").encode())
