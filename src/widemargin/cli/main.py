"""The program `widemargin`: it runs a command and reports an exception as one line and an exit status.

The exit status is 0 for success, 1 if the data are wrong or the command failed, 2 for wrong usage, 130 after Ctrl-C if
nothing was written, and 141 if the reader of a pipe has closed it.
"""

import os
import sys
from importlib import import_module

from widemargin._runtime.interrupts import remembering_interrupts
from widemargin._runtime.version import __version__
from widemargin.cli.help_text import width, wrapped
from widemargin.cli.messages import (
    OPTIONS,
    CommandError,
    UsageError,
    did_you_mean,
    explain_os_error,
    own_name,
    say,
    warnings_as_lines,
)
from widemargin.errors import ClusterError, FormatError
from widemargin.workflows.errors import ArgumentError, FileError, spelling

COMMANDS = {
    "train": "train or cross-validate a linear, kernel or ranking machine on a file of SVM-light / LIBSVM text",
    "predict": "predict the rows of a file with a model",
    "easy": "check, scale, grid, train, predict and report with one command",
    "grid": "choose C, gamma and other parameters by cross-validation, and train with the best",
    "scale": "scale the features of a file to a range or to unit variance, with the range files of svm-scale",
    "report": "write a page about a model and its predictions on the rows of a file",
    "check": "list all defects of a data file, summarise its rows, and warn about what looks wrong",
    "subset": "divide the rows of a file into a random subset and the rest",
    "convert": "write data of any size as a row-block file, for training on more than memory holds",
    "compress": "write a kernel machine on fewer vectors, which predicts faster",
    "export": "write a model for ONNX runtimes, or a linear one as a program in Python or C",
    "warmup": "compile ahead of the first fit, for images of containers and continuous integration",
    "demo": "five machines on made-up rows beside scikit-learn: a table, a picture and a page, in about a minute",
    "completion": "print a script that completes commands and options in bash, zsh or fish",
    "as": "run as svm_learn, svm_perf_learn, svm_rank_learn, svm-train, LIBLINEAR's train, svmocas and others do",
}
"""What each does. Each is a file in `cli.commands`, which is imported when the command runs."""
_FILES = {"as": "as_program"}  # of commands whose name cannot be that of a module

_FAILED, _WRONG_USAGE, _INTERRUPTED, _BROKEN_PIPE = 1, 2, 130, 141  # exit status

_COMMAND_LINES = "\n".join(f"  {name:10}  {words}" for name, words in COMMANDS.items())
_HELP = f"""\
usage: widemargin COMMAND [options] FILES

Support vector machines at the speed of memory, each model with a proof of how good it is.

commands:
{_COMMAND_LINES}

options:
  -h, --help   show this help and exit; widemargin COMMAND --help shows the help of a command
  --version    show the version and exit

examples:
  widemargin train -c 10 heart_scale heart.model
  widemargin train -s 0 -t 2 -g 0.1 -b 1 heart_scale heart.model
  widemargin train -v 5 heart_scale
  widemargin train --task rank -c 20 train.dat rank.model
  widemargin predict heart_scale.t heart.model heart.out
  widemargin easy svmguide1 svmguide1.t
  widemargin grid heart_scale heart.model
  widemargin scale -s heart.range heart > heart_scale
  widemargin check heart_scale
  widemargin subset heart_scale 0.8 heart.train heart.test
  widemargin report heart.model heart_scale.t -o heart.html
  widemargin convert --max-memory 3G huge.svm.xz huge.arrow
  widemargin compress --vectors 500 heart.model small.model
  widemargin export --to onnx heart.model heart.onnx
  widemargin warmup
  widemargin demo
  widemargin as svm_learn -c 1 -t 2 -g 0.5 heart_scale heart.model

LIBSVM's options have the same meaning: -s -t -d -g -r -c -n -p -m -e -h -b -wLABEL -v -q, and -b -q for predict.
"-" is standard input or output wherever a file is expected. Progress is shown on standard error as bars on a terminal;
in a pipe nothing is shown unless --progress yes requests lines, and with --quiet nothing is shown at all.
--json prints results as JSON for other programs.

environment:
  WIDEMARGIN_MAX_DECOMPRESSED  bytes that a compressed file may expand to, if more than 100 times its size (256 MB)
  NUMBA_CACHE_DIR              folder of compiled code (default: beside the package, or in the home folder)

exit status:
  0  done      1  the data or the run failed      2  wrong usage      130  interrupted, nothing written"""


def main(argv=None):
    """Run the command line; return the exit status.

    Parameters
    ----------
    argv : list of str or None
        The arguments after `widemargin`; None takes those of the process.
    """
    with own_name():
        try:
            with warnings_as_lines(), spelling(OPTIONS):
                status = _run(sys.argv[1:] if argv is None else list(argv))
            sys.stdout.flush()
        except BrokenPipeError:
            _abandon_output()
            return _BROKEN_PIPE
        except OSError as error:
            if error.filename is None:  # standard output: errors of other files have a name
                _abandon_output()
            say("error", explain_os_error(error))
            return _FAILED
        return status


def _run(words):
    """Run a command; report an exception, and return the exit status."""
    with remembering_interrupts() as interrupted:
        try:
            return _dispatch(words)
        except SystemExit as stop:  # argparse, after it has shown a help text
            return stop.code or 0
        except (UsageError, ArgumentError) as error:
            say("error", error)
            return _WRONG_USAGE
        except (CommandError, FileError, FormatError, ClusterError) as error:
            say("error", error)
            return _FAILED
        except MemoryError:
            say("error", "the data do not fit into memory; --float32 halves it")
            return _FAILED
        except OSError:
            raise
        except BaseException as error:
            if not (isinstance(error, KeyboardInterrupt) or interrupted.is_set()):
                return _report_defect(error)
            message = str(error) if isinstance(error, KeyboardInterrupt) else ""
            say("error", f"interrupted; {message or 'nothing was written'}")
            return _INTERRUPTED


def _report_defect(error):
    """Report an unexpected exception, which is a defect of the program; return the exit status."""
    if os.environ.get("WIDEMARGIN_TRACEBACK"):
        raise error
    say("error", f"unexpected {type(error).__name__}: {error}; this is a defect of widemargin, please report it with "
        "what WIDEMARGIN_TRACEBACK=1 in the environment shows")  # fmt: skip
    return _FAILED


def _dispatch(words):
    """Run the command that the first argument names with the other arguments."""
    if not words:
        print(wrapped(_HELP, width()), file=sys.stderr)
        return _WRONG_USAGE
    command, *rest = words
    if command in ("-h", "--help", "help"):
        print(wrapped(_HELP, width()))
    elif command == "--version":
        print(f"widemargin {__version__}")
    elif command in COMMANDS:
        return import_module(f"widemargin.cli.commands.{_FILES.get(command, command)}").run(rest)
    else:
        hint = did_you_mean(command, [*COMMANDS, "--help", "--version"])
        raise UsageError(f"unknown command {command!r}{hint} (see widemargin --help)")
    return 0


def _abandon_output():
    """Replace standard output by the null device, so that the interpreter does not fail when it flushes it at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
