"""The summary of all pages: tables of README.md and of the documentation, made from the pages and nothing else.

A headline is the column of ratios of one table: its median, smallest and largest, and in how many cells the others are
not faster. An excerpt is some columns of one table. Both stand between markers, `<!-- made: NAME -->`.
"""

import fnmatch
import re
import statistics
from dataclasses import dataclass, replace

from benchmarks.machinery.figures import read
from benchmarks.machinery.page import RESULTS, sections_of
from benchmarks.machinery.records import BUILD
from benchmarks.machinery.state import ROOT


@dataclass(frozen=True)
class Headline:
    """A column of ratios, theirs / ours, with what it compares."""

    words: str
    page: str
    section: str
    column: str
    where: tuple = ()  # pairs of a column and the pattern that its value must have
    is_ours_above: bool = False  # the column is ours / theirs
    over: str = ""  # column of our seconds, if the other column has theirs instead of ratios
    first: str = ""  # words for README.md, which has some of the headlines only
    short: str = ""  # words for the picture


_IMPORT = (("what", "import and name an estimator"),)
HEADLINES = [
    Headline(
        "linear, sums over C: LIBLINEAR",
        "linear",
        "sums",
        "LIBLINEAR / auto",
        first="`LinearSVC`, sums over C: LIBLINEAR",
        short="linear:\nLIBLINEAR",
    ),
    Headline("linear, every C: LIBLINEAR", "linear", "grid", "LIBLINEAR / auto"),
    Headline(
        "L1 penalty, sums over C: LIBLINEAR",
        "l1",
        "sums",
        "LIBLINEAR / widemargin",
        first='`LinearSVC(penalty="l1")`, sums over C: LIBLINEAR',
        short="L1 penalty:\nLIBLINEAR",
    ),
    Headline(
        "log loss, sums over C: the best of LIBLINEAR and scikit-learn",
        "logistic",
        "summary",
        "ratio of sums",
        first='`LinearSVC(loss="log_loss")`, sums over C: the best of LIBLINEAR and scikit-learn',
    ),
    Headline(
        "linear, a path of C with folds: GridSearchCV",
        "linear",
        "path",
        "as it comes / c_path, 2 threads",
        first="`c_path` with folds: scikit-learn's GridSearchCV",
    ),
    Headline(
        "linear, default calls: scikit-learn",
        "defaults",
        "defaults",
        "scikit-learn / ours",
        first="default calls: scikit-learn",
    ),
    Headline(
        "kernel, 1 thread: scikit-learn",
        "kernel",
        "training",
        "scikit-learn / ours, 1 thread",
        first="`SVC`, `SVR`, one thread: scikit-learn",
        short="kernels:\nscikit-learn",
    ),
    Headline(
        "kernel, all threads: LIBSVM",
        "kernel",
        "training",
        "LIBSVM / ours, * threads",
        first="`SVC`, `SVR`, two threads: LIBSVM",
        short="kernels:\nLIBSVM",
    ),
    Headline(
        "kernel, all threads: intelex",
        "kernel",
        "training",
        "intelex / ours, * threads",
        first="`SVC`, `SVR`, two threads: scikit-learn-intelex",
        short="kernels:\nintelex",
    ),
    Headline("kernel, small sets, all threads: LIBSVM", "kernel", "small", "LIBSVM / ours, * threads"),
    Headline("kernel, small sets, all threads: intelex", "kernel", "small", "intelex / ours, * threads"),
    Headline("kernel, prediction, all threads: intelex", "kernel", "prediction", "intelex / ours, * threads"),
    Headline(
        "kernel, large sets as far as it was run: LIBSVM",
        "kernel-large",
        "large",
        "theirs / ours",
        (("who", "LIBSVM"),),
    ),
    Headline(
        "kernel, large sets as far as it was run: intelex",
        "kernel-large",
        "large",
        "theirs / ours",
        (("who", "intelex"),),
    ),
    Headline(
        "50 to 4,435 rows, default calls: scikit-learn",
        "small",
        "small",
        "scikit-learn / ours",
        first="50 to 4,435 rows, default calls: scikit-learn",
        short="small sets:\nscikit-learn",
    ),
    Headline("50 to 4,435 rows, default calls: intelex", "small", "small", "intelex / ours"),
    Headline(
        "grids of C and gamma: GridSearchCV",
        "grid",
        "grid",
        "GridSearchCV / grid_search",
        first="`grid_search`: scikit-learn's GridSearchCV",
        short="grids:\nGridSearchCV",
    ),
    Headline(
        "cutting planes: the OCAS program",
        "cutting-planes",
        "ocas-program",
        "2 threads: theirs / ours",
        first="cutting planes: the OCAS program",
        short="cutting planes:\nOCAS",
    ),
    Headline("several classes at once: the MSVMOCAS program", "cutting-planes", "classes", "msvmocas / auto"),
    Headline(
        "fifteen million rows from disk: OCAS on 16 cores, as published",
        "larger-than-memory",
        "splice",
        "OCAS, 16 cores",
        over="seconds",
        first="fifteen million rows from disk under 3 GB: OCAS's paper, 16 cores and 32 GB",
    ),
    Headline(
        "two processes on a Dask cluster: one process of ours",
        "cluster",
        "local",
        "ratio",
        is_ours_above=True,
    ),
    Headline(
        "two processes on a cluster: Spark's LinearSVC",
        "cluster",
        "peers",
        "ratio to ours on the cluster",
        (("who", "Spark*"),),
        first="rows on a Dask cluster of two processes: Spark's LinearSVC",
    ),
    Headline("reading text: scikit-learn", "reading", "reading", "scikit-learn / ours"),
    Headline("writing text: scikit-learn", "reading", "writing", "scikit-learn / ours"),
    Headline("importing SVC: scikit-learn", "first-seconds", "commands", "ours / scikit-learn", _IMPORT, True),
]
_TEXTS = ("set", "svmlight-example1", "rcv1-vw-1000", "lasvm-reuters-money-fx", "20news.bigram.binary")
EXCERPTS = {  # name of the marker: page, section, columns (all if there are none), and a column with the cells to take
    "linear sums": ("linear", "sums", ["set", "auto", "LIBLINEAR", "svmocas", "LIBLINEAR / auto", "auto / best own"]),
    "linear machines of text": ("linear", "grid", ["set", "C", "auto", "LIBLINEAR", "LIBLINEAR / auto"], _TEXTS),
    "LIBLINEAR": ("linear", "sums", ["set", "auto", "LIBLINEAR", "LIBLINEAR / auto"]),
    "LIBLINEAR, L1 penalty": ("l1", "sums", ["set", "widemargin", "LIBLINEAR", "LIBLINEAR / widemargin"]),
    "a path with folds": ("linear", "path", ["set", "rows", "c_path, 2 threads", "GridSearchCV as it comes",
                                             "as it comes / c_path, 2 threads"]),
    "linear goals": ("linear", "summary", []),
    "linear path": ("linear", "path", ["set", "rows", "c_path, 2 threads", "GridSearchCV as it comes",
                                       "as it comes / c_path, 2 threads", "to 1e-3 / c_path, 2 threads"]),
    "benchopt": ("benchopt", "curves", []),
    "defaults": ("defaults", "summary", []),
    "choice": ("choice", "summary", []),
    "kernel": ("kernel", "training", ["set", "parameters", "rows", "ours, 1 thread", "ours, * threads", "scikit-learn",
                                      "LIBSVM, * threads", "intelex"]),
    "LIBSVM": ("kernel", "training", ["set", "parameters", "ours, * threads", "LIBSVM, * threads",
                                      "LIBSVM / ours, * threads"]),
    "LIBSVM, small sets": ("kernel", "small", ["set", "parameters", "rows", "ours, * threads", "LIBSVM, *",
                                               "LIBSVM / ours, * threads"]),
    "kernel prediction": ("kernel", "prediction", ["set", "rows", "ours, * threads", "scikit-learn", "intelex"]),
    "kernel large": ("kernel-large", "large", ["set", "rows", "who", "seconds", "support vectors", "peak GB",
                                               "theirs / ours"]),
    "kernel minimum": ("kernel-minimum", "minimum", ["set", "parameters", "threads", "seconds", "by NumPy",
                                                     "seconds / by NumPy", "by our code", "seconds / by our code",
                                                     "computed / support vectors' rows"]),
    "ranking": ("ranking", "means", []),
    "small": ("small", "summary", []),
    "first commands": ("first-seconds", "commands", []),
    "first fits": ("first-seconds", "fits", []),
    "nested threads": ("nested-threads", "nested", []),
    "grid": ("grid", "grid", ["set", "rows", "classes", "grid_search", "GridSearchCV", "GridSearchCV / grid_search"]),
    "cutting planes": ("cutting-planes", "ocas-program", ["set", "C", "svmocas, 2 threads", "ours, 2 threads",
                                                          "2 threads: theirs / ours"]),
    "MSVMOCAS": ("cutting-planes", "classes", ["set", "C times mean square", "msvmocas", "ours, ocas", "ours, auto",
                                               "msvmocas / ocas", "msvmocas / auto"]),
    "larger than memory": ("larger-than-memory", "splice", ["C", "seconds", "OCAS, 16 cores", "gap", "passes",
                                                            "GB read", "peak GB"]),
    "cluster": ("cluster", "local", ["set", "rows", "1 process × 2 threads, s", "2 × 1 on the cluster, s", "ratio"]),
    "killed workers": ("cluster", "killed", []),
    "reading": ("reading", "reading", ["file", "MB", "ours", "scikit-learn", "scikit-learn / ours", "ours, MB/s"]),
}  # fmt: skip
TARGETS = [ROOT / "README.md", *(ROOT / "docs" / name for name in (
    "benchmarks.md", "from/liblinear.md", "from/libsvm.md", "from/ocas.md", "howto/larger-than-memory.md",
    "howto/model-selection.md", "howto/ranking.md", "howto/text.md",
))]  # fmt: skip
PICTURE = ROOT / "docs" / "headlines.png"
_NOT_MADE = "This page has not been made yet."


def tables(page, folder=RESULTS):
    """Return the tables of a page by section; none if the page is not there."""
    path = folder / f"{page}.md"
    return sections_of(path.read_text(encoding="utf-8")) if path.exists() else {}


def headline_row(headline, folder=RESULTS):
    """Return the cells of a headline; None if its page has no such figures."""
    rows = tables(headline.page, folder).get(headline.section, [])
    chosen = [row for row in rows if all(fnmatch.fnmatchcase(row.get(name, ""), text) for name, text in headline.where)]
    told = [
        one for row in chosen for name in fnmatch.filter(row, headline.column) if (one := _ratio(row, name, headline))
    ]
    if headline.is_ours_above:
        told = [one._replace(value=1.0 / one.value) for one in told]
    if not told:
        return None
    told.sort(key=lambda one: one.value)
    median = statistics.median(one.value for one in told)
    faster = sum(one.value >= 1.0 for one in told)
    page = f"[{headline.page}](benchmarks/results/{headline.page}.md)"
    bounds = [f"{one.bound}{_short(one.value)}" for one in (told[0], told[-1])]
    return [headline.words, _short(median), *bounds, f"{faster} of {len(told)}", page]


def _ratio(row, column, headline):
    """Return the ratio in a column of a row, or of its seconds and ours; None if there is none."""
    one = read(row[column])
    ours = read(row[headline.over]) if headline.over else None
    return one and one._replace(value=one.value / ours.value) if ours else one


def _short(value):
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def first_headlines(folder=RESULTS):
    """Return the table of the headlines of README.md, in its words, in Markdown."""
    return headlines(folder, [replace(one, words=one.first) for one in HEADLINES if one.first])


def headlines(folder=RESULTS, chosen=HEADLINES):
    """Return the table of headlines, in Markdown."""
    columns = ["against", "median ratio", "smallest", "largest", "we are not slower in", "page"]
    found = {one: row for one in chosen if (row := headline_row(one, folder)) is not None}
    if not found:
        return _NOT_MADE
    pages = dict.fromkeys(one.page for one in found)
    return f"{_markdown(columns, list(found.values()))}\n\n{states_of_pages([*pages], folder)}"


def states_of_pages(pages, folder):
    """Return in words the states of the package that pages are of, each by the commit of its first page."""
    states = {}
    for page in pages:
        text = (folder / f"{page}.md").read_text(encoding="utf-8")
        told = re.search(r"\*\*This run\.\*\* Commit ([^;]+); (package \w+)?", text)
        commit, package = told.groups() if told else ("not recorded", None)
        states.setdefault(package or commit, (commit, []))[1].append(page)
    if len(states) == 1:
        return f"All pages are of one state of the package, that of commit {next(iter(states.values()))[0]}."
    parts = [f"{', '.join(several)}: {commit}" for commit, several in states.values()]
    return f"Commits. {'; '.join(parts)}."


def excerpt(name, folder=RESULTS):
    """Return the table of an excerpt, in Markdown."""
    page, section, columns, *chosen = EXCERPTS[name]
    rows = tables(page, folder).get(section, [])
    for column, *cells in chosen:
        rows = [row for row in rows if row[column] in cells]
    there = list(rows[0]) if rows else []
    columns = [name for column in columns or there for name in fnmatch.filter(there, column)]
    if not columns:
        return _NOT_MADE
    table = _markdown(columns, [[row[column] for column in columns] for row in rows])
    return f"{table}\n\nFrom [{page}](benchmarks/results/{page}.md#{_anchor(page, section, folder)})."


def _anchor(page, section, folder):
    """Return the anchor of the heading of a section."""
    before, _, _ = (folder / f"{page}.md").read_text(encoding="utf-8").partition(f"<!-- {section} -->")
    heading = next((line for line in before.splitlines()[::-1] if line.startswith("#")), "#").lstrip("# ").lower()
    return re.sub(r"[^\w -]", "", heading).replace(" ", "-")


def _markdown(columns, rows):
    rule = ["---", *["--:"] * (len(columns) - 1)]
    lines = ["| " + " | ".join(cells) + " |" for cells in (columns, *rows)]
    return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]])


def made(text, folder=RESULTS, path_of_results="benchmarks/results"):
    """Return a text with everything between markers made anew from the pages."""
    makers = {"headlines": headlines, "first headlines": first_headlines}
    for name in [*makers, *EXCERPTS]:
        begin, end = f"<!-- made: {name} -->", f"<!-- /made: {name} -->"
        if begin in text:
            content = makers[name](folder) if name in makers else excerpt(name, folder)
            content = content.replace("(benchmarks/results", f"({path_of_results}")
            head, _, rest = text.partition(begin)
            text = f"{head}{begin}\n{content}\n{end}{rest.partition(end)[2]}"
    return text


def path_of_results(target):
    """Return the way from a text to the pages."""
    return "../" * (len(target.relative_to(ROOT).parts) - 1) + "benchmarks/results"


def draw(path, folder=RESULTS):
    """Draw the medians and ranges of README.md's headlines, large enough for a telephone."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    chosen = [(one, row) for one in HEADLINES if one.short and (row := headline_row(one, folder)) is not None]
    with mpl.rc_context({"font.size": 13, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = plt.subplots(figsize=(6, 0.62 * len(chosen) + 1.2), layout="constrained")
        for place, (one, (_, *figures, _, _)) in enumerate(chosen):
            median, smallest, largest = (read(text).value for text in figures)
            axes.plot([smallest, largest], [place, place], color="#8fb8d8", linewidth=9, solid_capstyle="butt")
            axes.plot(median, place, marker="o", markersize=10, color="#0b4a73")
            axes.annotate(one.short, (0.22, place), va="center", annotation_clip=False, ha="right")
        axes.axvline(1.0, color="0.3", linewidth=1)
        axes.set(xscale="log", xlim=(0.3, 400), ylim=(len(chosen) - 0.4, -0.6), yticks=[])
        axes.set_xticks([1, 3, 10, 30, 100, 300], labels=["1", "3", "10", "30", "100", "300"])
        axes.set_xlabel("their seconds / ours: median and range")
        figure.savefig(path, dpi=110)
        plt.close(figure)


def main(quick=False):
    """Write the tables of README.md and docs/; after a quick run, a file beside its pages. Return the exit code."""
    if quick:
        target = BUILD / "quick" / "summary.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(headlines(BUILD / "quick") + "\n")
        print(f"{headlines(BUILD / 'quick')}\nwritten: {target}")
        return 0
    for target in TARGETS:
        target.write_text(made(target.read_text(encoding="utf-8"), RESULTS, path_of_results(target)), encoding="utf-8")
        print(f"written: {target}")
    draw(PICTURE)
    print(f"written: {PICTURE}")
    return 0
