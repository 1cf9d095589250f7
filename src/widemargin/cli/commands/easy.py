"""`widemargin easy`: check, scale, grid, train, predict and report in one go, each as its own command would do it."""

import io
import json
import os
import re
import shlex
import sys
import time
from contextlib import redirect_stdout

from widemargin.cli.commands import check, grid, predict, report, scale
from widemargin.cli.files import check_target
from widemargin.cli.messages import CommandError, UsageError, print_facts, print_json, say
from widemargin.cli.options.parsing import Parser, threads, whole
from widemargin.cli.progress import add_progress_option
from widemargin.data.precomputed_rows import KERNEL_WORDS

_DESCRIPTION = """\
From a file of SVM-light / LIBSVM text to a good model in one go: TRAIN is checked and scaled, C and gamma are chosen by
cross-validation, a model is trained with the best and described on a page; TEST, if there is one, is scaled by the same
ranges and predicted."""

_EXAMPLES = """\
examples:
  widemargin easy heart
  widemargin easy -j -1 svmguide1 svmguide1.t
  widemargin easy --kernel linear news20.xz news20.t.xz
  widemargin easy --resume -j -1 svmguide1 svmguide1.t    go on after a kill in the middle of the search

Files are written in the current directory, named after TRAIN and TEST: TRAIN.range, TRAIN.scale, TRAIN.scale.grid,
TRAIN.model, TRAIN.html, TEST.scale, TEST.predict. A file with defects is refused, all of them being listed; what merely
looks wrong is said. Sparse files are scaled so that zeros stay zeros.

Whether labels are classes or quantities is told from them; rows with queries (qid) are ranked, by a RankSVM, which is
linear and chosen by concordance. The kernel is rbf, or linear if there are more than 20,000
rows, or more features than rows and more than 1,000: --kernel overrules that. For regression epsilon is tried at 2^-8,
2^-5 and 2^-2 of the labels' deviation.

exit status:
  0  done      1  the data or the run failed      2  wrong usage      130  interrupted: go on with --resume"""

_MANY_ROWS, _MANY_FEATURES = 20_000, 1_000
_SPARSE = 0.25
_COMPRESSED = re.compile(r"\.(gz|bz2|xz|zst)$")
_TAKEN_CARE_OF = ("scales", "quantities")  # by what follows
_OTHER_SCALE = 10.0  # a standard deviation of targets that is so far from 1 is worth a note
_MEASURES = {
    "accuracy": lambda part: f"accuracy {100 * part:g}%",
    "mse": lambda error: f"mean squared error {error:g}",
    "concordance": lambda part: f"mean concordance {part:g}",
    "ndcg@10": lambda gain: f"NDCG@10 {gain:g}",
}
_TUBES = (2.0**-8, 2.0**-5, 2.0**-2)


def make_parser():
    """Return the parser of `widemargin easy`."""
    parser = Parser("easy", ["TRAIN", "[TEST]"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--task", choices=["classification", "regression", "rank"], help="what labels are (default: told from them; "
        "rank if rows have queries)")  # fmt: skip
    add("--kernel", choices=["rbf", "linear"], help="default: rbf unless the data are large")
    add("--extend", type=whole(0), default=0, metavar="N", help="while the best C, gamma or epsilon is the smallest or "
        "largest tried, try the next one beyond, at most N times (default: 0)")  # fmt: skip
    add("--scale-targets", action="store_true", help="regression: search with targets of mean 0 and standard deviation "
        "1; the model predicts in the units of TRAIN")  # fmt: skip
    add("--refine", type=whole(0), default=0, metavar="N", help="look closer around the best, N times (default: 0)")
    add("-v", type=whole(2), default=5, dest="n_folds", metavar="K", help="folds of the search (default: 5)")
    add("-j", "--jobs", type=threads, default=1, metavar="N", help="threads; -1 for all cores (default: 1)")
    add("--seed", type=whole(0), default=0, metavar="N", help="the same seed gives the same folds (default: 0)")
    add("--resume", action="store_true", help="go on with the search of an earlier run")
    add("--overwrite", action="store_true", help="begin the search anew although the results of one are there")
    add_progress_option(parser)
    add("-q", "--quiet", action="store_true", help="print nothing but warnings and errors")
    add("--json", action="store_true", help="print one JSON object instead of text")
    return parser


def run(tokens):
    """Do it all; return the exit status."""
    command = shlex.join(["widemargin", "easy", *tokens])
    parser = make_parser()
    options = parser.parse(tokens)
    if "-" in options.files:
        parser.error("TRAIN and TEST must be files, as they are read more than once")
    if options.resume and options.overwrite:
        parser.error("--resume and --overwrite contradict each other; leave one of them out")
    if options.task == "rank" and options.kernel == "rbf":
        parser.error("--kernel rbf is not for --task rank: a RankSVM is linear; leave it out")
    if options.scale_targets and options.task not in (None, "regression"):
        parser.error("--scale-targets is for regression; leave it out")
    steps = _Steps(options)
    steps.check()
    steps.scale()
    steps.search()
    steps.predict()
    steps.report(command)
    steps.tell()
    return 0


class _Steps:
    """The steps, each with what the ones before it found."""

    def __init__(self, options):
        self._options, self._begun = options, time.perf_counter()
        train, test = options.files
        self._train, self._test = train, test
        stem = _COMPRESSED.sub("", os.path.basename(train))
        self._files = {kind: f"{stem}.{kind}" for kind in ("range", "scale", "model", "html")}
        self._files["grid"] = f"{stem}.scale.grid"  # as grid itself would call it
        if test is not None:
            test_stem = _COMPRESSED.sub("", os.path.basename(test))
            self._files |= {"test scale": f"{test_stem}.scale", "predict": f"{test_stem}.predict"}
            if test_stem == stem:
                raise UsageError(f"{train} and {test} would be written to the same files; rename one of them")
        for path in self._files.values():
            check_target(path, *filter(None, options.files))
        grid.check_results(self._files["grid"], options)
        self.facts = {}

    def _say(self, step, message):
        if not (self._options.quiet or self._options.json):
            print(f"{step:<8} {message}", flush=True)

    def _command(self, command, /, *words, **more):
        """Run a command, and return what it prints as JSON."""
        quiet = ["-q"] if self._options.quiet else ["--progress", self._options.progress]
        printed = io.StringIO()
        with redirect_stdout(printed):
            status = command.run([*map(str, words), *quiet, "--json"], **more)
        found = json.loads(printed.getvalue())
        if status and command is not check:
            raise CommandError(f"{command.__name__.rpartition('.')[2]} failed")
        return found

    def check(self):
        """Refuse files with defects; say what looks wrong."""
        for path in filter(None, (self._train, self._test)):
            words = ["--task", self._options.task] if self._options.task in ("classification", "regression") else []
            found = self._command(check, *words, path)
            for defect in found["defects"]:
                place = [str(part) for part in (path, defect["line"], defect["column"]) if part is not None]
                print(f"{':'.join(place)}: {defect['message']}", file=sys.stderr)
            if count := found["n_defects"]:
                raise CommandError(f"{path} has {count} defect{'' if count == 1 else 's'}; mend them first")
            if found["summary"]["is_kernel"]:
                raise CommandError(f"{path}: {KERNEL_WORDS}, which is not scaled; search with widemargin grid -t 4")
            if path == self._train:
                self._summary = found["summary"]
                for suspicion in found["suspicions"]:
                    if suspicion["kind"] not in _TAKEN_CARE_OF and not self._options.quiet:
                        say("note", f"{path}: {suspicion['message']}; {suspicion['cure']}")
            rows, features = found["summary"]["n_rows"], found["summary"]["n_features"]
            self._say("check", f"{path}: {rows} rows, {features} features, no defects")
        self._task = self._options.task or _task_of(self._summary)
        if self._options.scale_targets and self._task != "regression":
            raise CommandError(f"{self._train}: --scale-targets is for regression, this is {self._task}; leave it out")
        self.facts |= {"task": self._task, "rows": self._summary["n_rows"], "features": self._summary["n_features"]}

    def scale(self):
        """Scale both files by the ranges of the first."""
        files, way = self._files, ["--keep-zeros"] if self._summary["density"] < _SPARSE else []
        self._command(scale, *way, "-s", files["range"], "-o", files["scale"], self._train)
        if self._test is not None:
            self._command(scale, "-r", files["range"], "-o", files["test scale"], self._test)
        how = "largest absolute value to 1, zeros stay" if way else "each feature to [-1, 1]"
        self._say("scale", f"{files['scale']}: {how}, ranges in {files['range']}")

    def _kernel(self):
        if self._options.kernel is not None:
            return self._options.kernel
        rows, features = self._summary["n_rows"], self._summary["n_features"]
        is_large = rows > _MANY_ROWS or features > max(rows, _MANY_FEATURES)
        if is_large:
            self._say(
                "grid", f"linear, as {rows} rows of {features} features are many for a kernel (--kernel rbf does it)"
            )
        return "linear" if is_large else "rbf"

    def _machine(self):
        """Return the kernel, and the words that describe the machine."""
        if self._task == "rank":
            return "linear", ["--task", "rank"]
        kernel = self._kernel()
        if self._task == "classification":
            return kernel, ["--kernel", kernel]
        spread = 1.0 if self._options.scale_targets else self._summary["labels"]["spread"] or 1.0
        tubes = f"epsilon={','.join(repr(part * spread) for part in _TUBES)}"
        return kernel, ["--kernel", kernel, "--task", "regression", "--values", tubes]

    def _offer_scaling(self):
        """Say that targets are far from the scale for which the usual values of C are made."""
        labels = self._summary["labels"]
        if self._task != "regression" or self._options.scale_targets or self._options.quiet:
            return
        if not 1.0 / _OTHER_SCALE < labels["spread"] < _OTHER_SCALE:
            say("note", f"{self._train}: targets have the standard deviation {labels['spread']:g}; --scale-targets "
                "searches in units of it")  # fmt: skip

    def search(self):
        """Choose parameters, and train with the best."""
        options, files = self._options, self._files
        self._offer_scaling()
        kernel, words = self._machine()
        words += ["-j", options.jobs, "--seed", options.seed, "-v", options.n_folds, "--results", files["grid"]]
        words += ["--refine", options.refine, "--extend", options.extend]
        ways = ("resume", "overwrite", "scale_targets")
        words += [f"--{way.replace('_', '-')}" for way in ways if getattr(options, way)]
        found = self._command(grid, *words, files["scale"], files["model"])
        best = ", ".join(f"{name} {value:g}" for name, value in found["best"].items())
        self._say("grid", f"{len(found['points'])} points: best {best}, {found['scoring']} {abs(found['score']):.6g}")
        for name, side in found["edges"].items():
            self._say("grid", f"{name} {found['best'][name]:g} is the {side} tried; --extend N goes beyond")
        self._say("train", f"{files['model']}: certified gap {found['gap']:.1e}")
        self.facts |= {"kernel": kernel, **{name: found[name] for name in ("best", "edges", "score", "scoring", "gap")}}

    def predict(self):
        """Predict the test file."""
        if self._test is None:
            return
        files = self._files
        found = self._command(predict, files["test scale"], files["model"], files["predict"])
        self.facts["test"] = found
        measures = [words(found[name]) for name, words in _MEASURES.items() if found.get(name) is not None]
        self._say("predict", f"{files['predict']}: {', '.join([*measures, str(found['rows']) + ' rows'])}")

    def report(self, command):
        """Write the page, with the line that was typed."""
        files = self._files
        data = files["scale"] if self._test is None else files["test scale"]
        title = os.path.basename(self._train) + ("" if self._test is None else f" and {os.path.basename(self._test)}")
        words = ["-o", files["html"], "--grid", files["grid"], "--title", title, files["model"], data]
        self._command(report, *words, command=command)
        self._say("report", files["html"])

    def tell(self):
        """Say how it ended."""
        self.facts |= {"files": self._files, "seconds": time.perf_counter() - self._begun}
        if self._options.json:
            print_json(self.facts, sys.stdout)
        elif not self._options.quiet:
            print_facts({"done in": f"{self.facts['seconds']:.1f} s"}, sys.stdout)


def _task_of(summary):
    """Return what labels are for, told from the data."""
    if summary["queries"] is not None:
        return "rank"
    return "regression" if summary["labels"]["classes"] is None else "classification"
