"""The command `widemargin`: finds the command, runs it, and turns what went wrong into one line and an exit status.

Exit status 0 is done, 1 the data or the run failed, 2 wrong usage; 130 after Ctrl-C with nothing written, 141 if
whoever read the output went away.
"""

import difflib
import os
import sys

from widemargin._runtime.interrupts import remembering_interrupts
from widemargin._runtime.version import __version__
from widemargin.cli.commands import check, demo, easy, grid, predict, report, scale, subset, train
from widemargin.cli.messages import OPTIONS, CommandError, UsageError, explain_os_error, say, warnings_as_lines
from widemargin.errors import FormatError
from widemargin.workflows.errors import ArgumentError, FileError, spelling

COMMANDS = {
    "train": train.run,
    "predict": predict.run,
    "easy": easy.run,
    "grid": grid.run,
    "scale": scale.run,
    "report": report.run,
    "check": check.run,
    "subset": subset.run,
    "demo": demo.run,
}

_FAILED, _MISUSED, _INTERRUPTED, _NOBODY_READS = 1, 2, 130, 141

_HELP = """\
usage: widemargin COMMAND [options] FILES

Support vector machines at the speed of memory, each model with a proof of how good it is.

commands:
  train     train a linear or kernel machine, or a ranking, on a file of SVM-light / LIBSVM text, or cross-validate
  predict   predict the rows of a file with a model
  easy      check, scale, grid, train, predict and report in one go
  grid      choose C, gamma and other parameters by cross-validation, and train with the best
  scale     scale the features of a file to a range or to unit variance, with the range files of svm-scale
  report    write a page about a model and how it does on the rows of a file
  check     list every mistake of a data file, summarise its rows, and say what looks wrong
  subset    take some of the rows of a file, at random or by label, and the others apart
  demo      a tour on small data sets: solvers compared in a table and a picture

options:
  -h, --help   show this help and exit; widemargin COMMAND --help shows that of a command
  --version    show the version and exit

examples:
  widemargin train -c 10 heart_scale heart.model
  widemargin train -s 0 -t 2 -g 0.1 -b 1 heart_scale heart.model
  widemargin train -v 5 heart_scale
  widemargin train --task rank -c 20 train.dat rank.model
  widemargin predict heart_scale.t heart.model heart.out
  widemargin easy -j -1 svmguide1 svmguide1.t
  widemargin grid -j -1 heart_scale heart.model
  widemargin scale -s heart.range heart > heart_scale
  widemargin check heart_scale
  widemargin subset heart_scale 0.8 heart.train heart.test
  widemargin report heart.model heart_scale.t -o heart.html
  widemargin demo

LIBSVM's letters keep their meaning: -s -t -d -g -r -c -n -p -m -e -h -b -wLABEL -v -q, of predict -b and -q.
"-" stands for standard input or output wherever a file is named. What takes longer than a moment shows its progress
on standard error: bars on a terminal, nothing in a pipe unless --progress yes asks for lines, nothing with --quiet.
--json prints results for programs.

environment:
  WIDEMARGIN_MAX_DECOMPRESSED  bytes that a compressed file may expand to, if more than 100 times its size (256 MB)
  NUMBA_CACHE_DIR              the folder in which compiled code is kept; otherwise beside the package, or in the home

exit status:
  0  done      1  the data or the run failed      2  wrong usage      130  interrupted, nothing written"""


def main(argv=None):
    """Run the command line; return the exit status.

    Parameters
    ----------
    argv : list of str or None
        The words after `widemargin`; None takes those of the process.
    """
    try:
        with warnings_as_lines(), spelling(OPTIONS):
            status = _run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_output()
        return _NOBODY_READS
    except OSError as error:
        if error.filename is None:  # every other file is named by whoever opened it
            _abandon_output()
        say("error", explain_os_error(error))
        return _FAILED
    return status


def _run(words):
    """Run a command; return its exit status, with what went wrong said."""
    with remembering_interrupts() as interrupted:
        try:
            return _dispatch(words)
        except SystemExit as stop:  # argparse, after it has shown a help text
            return stop.code or 0
        except (UsageError, ArgumentError) as error:
            say("error", error)
            return _MISUSED
        except (CommandError, FileError, FormatError) as error:
            say("error", error)
            return _FAILED
        except MemoryError:
            say("error", "the data do not fit into memory; --float32 halves it")
            return _FAILED
        except OSError:
            raise
        except BaseException as error:
            if not (isinstance(error, KeyboardInterrupt) or interrupted.is_set()):
                return _admit(error)
            kept = str(error) if isinstance(error, KeyboardInterrupt) else ""
            say("error", f"interrupted; {kept or 'nothing was written'}")
            return _INTERRUPTED


def _admit(error):
    """Say in one line that something went wrong which nobody thought of; return the exit status."""
    if os.environ.get("WIDEMARGIN_TRACEBACK"):
        raise error
    say("error", f"unexpected {type(error).__name__}: {error}; this is a defect of widemargin, please report it with "
        "what WIDEMARGIN_TRACEBACK=1 in the environment shows")  # fmt: skip
    return _FAILED


def _dispatch(words):
    """Find the command of the first word and run it with the others."""
    if not words:
        print(_HELP, file=sys.stderr)
        return _MISUSED
    command, *rest = words
    if command in ("-h", "--help", "help"):
        print(_HELP)
    elif command == "--version":
        print(f"widemargin {__version__}")
    elif command in COMMANDS:
        return COMMANDS[command](rest)
    else:
        near = difflib.get_close_matches(command, [*COMMANDS, "--help", "--version"], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"unknown command {command!r}{hint} (see widemargin --help)")
    return 0


def _abandon_output():
    """Point standard output at nothing, so that the interpreter does not fail on it once more when it ends."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
