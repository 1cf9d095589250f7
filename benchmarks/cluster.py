"""Fits on a Dask cluster: against one process, the same bits, killed workers, Spark, and a model of large clusters.

    python -m benchmarks.cluster [--folder DIR] [--only local,bits,killed,peers,model] [--scale F] [--dry]

Writes benchmarks/results/cluster.md and docs/cluster.png. Files, and the environments of the peers, are made in a
folder outside the repository when they are not there. `--scale` reduces the data, to try the benchmark.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

from benchmarks.cluster_fits import KILLS, run_bits, run_killed, run_local
from benchmarks.cluster_model import run_model
from benchmarks.cluster_peers import run_peers
from benchmarks.cluster_words import INTRODUCTION, SECTIONS
from benchmarks.page import Page, machine, versions

ROOT = Path(__file__).parents[1]
PAGE, PICTURE, FACTS = ROOT / "benchmarks/results/cluster.md", ROOT / "docs/cluster.png", "cluster-{:g}.json"
RUNS = {"local": run_local, "bits": run_bits, "killed": run_killed, "peers": run_peers, "model": run_model}
WRITES = {"model": ["costs", "check", "model"]}  # sections, where they are not one of the same name


def main():
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    page = Page(PAGE, INTRODUCTION, SECTIONS, dry=options.dry)
    facts_file = options.folder / FACTS.format(options.scale)
    facts = json.loads(facts_file.read_text()) if facts_file.exists() else {}
    words = f"{machine()}; {versions('widemargin', 'numpy', 'numba', 'dask', 'distributed', 'scikit-learn')}; one run"
    for name in options.only:
        load = os.getloadavg()[0]
        facts[name] = RUNS[name](page, options, facts)
        facts_file.write_text(json.dumps(facts))
        for section in WRITES.get(name, [name]):
            page.note(section, f"{words}; load before it {load:.1f}" + _scaled(options))
    if {"killed", "model"} <= set(facts) and not options.dry:
        from benchmarks.cluster_pictures import draw

        draw(facts, PICTURE)


def _scaled(options):
    return "" if options.scale == 1.0 else f"; data reduced to {options.scale:g}"


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "widemargin-cluster")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(RUNS))
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of rows")
    parser.add_argument("--kills", type=int, default=KILLS, help="how many fits lose a worker")
    parser.add_argument("--dry", action="store_true", help="write no page and no picture")
    options = parser.parse_args()
    unknown = set(options.only) - set(RUNS)
    if unknown:
        parser.error(f"--only knows {', '.join(RUNS)}; got {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    main()
