"""`widemargin train`: train and write a model; with -v, cross-validate. See `train_file` and `cross_validate_file`."""

import sys

from widemargin.cli.messages import print_json, reporting, say
from widemargin.cli.options.model import hint, make_model, make_parser, reading_options
from widemargin.cli.options.parsing import translate_letters


def run(tokens):
    """Train, or cross-validate with -v; return the exit status."""
    parser = make_parser(data="DATA...")
    options = parser.parse(translate_letters(tokens))
    options.files = _data_and_target(options.files)
    if options.dask is not None and options.n_folds is not None:
        parser.error("--dask is for training, and -v measures in this process; leave one of them out")
    model = make_model(parser, options)
    return _train(model, options) if options.n_folds is None else _cross_validate(model, options)


def _data_and_target(files):
    """Return the file of rows, or a list of several, and that of the model or None."""
    *data, target = files if len(files) > 1 else [*files, None]
    return data[0] if len(data) == 1 else data, target


def _train(model, options):
    """Train and write the model, and print a summary; return the exit status."""
    from widemargin.workflows.train import train_file

    with reporting(options):
        trained = train_file(model, *options.files, **reading_options(options), dask=options.dask)
    stream = sys.stderr if trained.output == "-" else sys.stdout
    if options.json:
        print_json(trained.to_dict(), stream)
    elif not options.quiet:
        print(f"{trained.description}{hint(model, options)}\n{trained.summary}", file=stream)
    if trained.interrupted:
        say("warning", f"interrupted: {trained.output} holds the model so far")
        return 1
    return 0


def _cross_validate(model, options):
    """Cross-validate the model and print the lines of svm-train; return the exit status."""
    data, target = options.files
    if target is not None:
        say("warning", f"{target} is not written: -v only measures")
    from widemargin.workflows.train import cross_validate_file

    with reporting(options):
        measured = cross_validate_file(
            model, data, n_folds=options.n_folds, seed=options.seed, **reading_options(options)
        )
    if options.json:
        print_json(measured.to_dict(), sys.stdout)
    elif options.quiet:
        print(measured.summary)
    else:
        print(f"{measured.description}{hint(model, options)}\n{measured.summary}")
    return 0
