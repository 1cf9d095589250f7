"""`widemargin completion`: a script that completes commands, options and values in a shell."""

from importlib import import_module

from widemargin.cli.completion_scripts import SCRIPTS
from widemargin.cli.messages import UsageError
from widemargin.cli.options.parsing import Parser
from widemargin.cli.programs.registry import MODULES

_DESCRIPTION = """\
Print a script that completes the commands of widemargin, their options and the values of these, for bash, zsh or
fish."""

_EXAMPLES = """\
examples:
  widemargin completion bash > widemargin.bash     source it in ~/.bashrc
  widemargin completion zsh > _widemargin          keep it in a folder of fpath
  widemargin completion fish > widemargin.fish     keep it in ~/.config/fish/completions

exit status:
  0  done      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin completion`."""
    return Parser("completion", ["SHELL"], description=_DESCRIPTION, examples=_EXAMPLES)


def run(tokens):
    """Print the script; return the exit status."""
    (shell,) = make_parser().parse(tokens).files
    if shell not in SCRIPTS:
        raise UsageError(f"SHELL must be one of {', '.join(SCRIPTS)}, got {shell!r}")
    print(SCRIPTS[shell](_commands()), end="")
    return 0


def _commands():
    """Return what each command does, its options, and words that may follow it in place of files."""
    from widemargin.cli.main import COMMANDS

    more = {"as": [*MODULES, "--install"], "completion": [*SCRIPTS]}
    return {name: (words, _options(name), more.get(name, [])) for name, words in COMMANDS.items()}


def _options(command):
    """Return the options of a command; `as` has those of its programs, which are not completed."""
    if command == "as":
        return []
    return import_module(f"widemargin.cli.commands.{command}").make_parser().described()
