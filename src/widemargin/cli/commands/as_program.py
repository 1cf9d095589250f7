"""`widemargin as`: run as a program of SVM-light, SVM-Perf, SVM-rank, LIBSVM, LIBLINEAR or OCAS; see `cli.programs`."""

import textwrap

from widemargin.cli.help_text import width, wrapped
from widemargin.cli.messages import OPTIONS, CommandError, UsageError, did_you_mean, explain_os_error, say, speak_as
from widemargin.cli.programs.install import install
from widemargin.cli.programs.output import note_options
from widemargin.cli.programs.registry import MODULES, program
from widemargin.errors import FormatError
from widemargin.workflows.errors import ArgumentError, FileError, spelling

_HELP = f"""\
usage: widemargin as PROGRAM ARGUMENTS
       widemargin as --install DIR

Runs as another program does: its options, model files, output files and printed summary.

programs:
{textwrap.fill(", ".join(MODULES), 58, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)}

options:
  --install DIR  write a small script with the name of each program to a directory
  -h, --help     show this help and exit; widemargin as PROGRAM --help lists the options of a program

examples:
  widemargin as svm_learn -c 1 -t 2 -g 0.5 heart_scale heart.model
  widemargin as svm-train -c 10 -g 0.1 heart_scale heart.model
  widemargin as --install .

Options that the program has and that cannot be had here are refused by name, with the reason.

exit status:
  0  done      1  the data, the usage or the run failed      2  no such program
  linclassif: 1  done      0  the data, the usage or the run failed, as in the original"""


def run(tokens):
    """Run a program, or install the scripts; return the exit status."""
    if not tokens or tokens[0] in ("-h", "--help"):
        print(wrapped(_HELP, width()))
        return 0 if tokens else 2
    name, *rest = tokens
    if name == "--install":
        return _install(rest)
    if name not in MODULES:
        raise UsageError(f"unknown program {name!r}{did_you_mean(name, MODULES)} (see widemargin as --help)")
    return _run(program(name), rest)


def _run(chosen, tokens):
    """Run a program with its arguments; if that fails, it ends with its own exit status."""
    asks = {"--help", "-?", "-h"} - {option.letter for option in chosen.options}
    if len(tokens) == 1 and tokens[0] in asks:
        print(chosen.help())
        return 0
    speak_as(chosen.name)
    try:
        arguments = chosen.parse(tokens)
        note_options(chosen, arguments)
        with spelling({**OPTIONS, "take SVR or LinearSVR": "choose a type of regression"}):
            return chosen.run(arguments)
    except (UsageError, ArgumentError, CommandError, FileError, FormatError) as error:
        say("error", error)
    except OSError as error:
        if error.filename is None:  # standard output
            raise
        say("error", explain_os_error(error))
    return chosen.failure_status


def _install(tokens):
    """Write the scripts; return the exit status."""
    if len(tokens) != 1:
        raise UsageError("--install needs a directory")
    for path in install(tokens[0], MODULES):
        print(path)
    return 0
