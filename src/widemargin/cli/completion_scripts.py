"""Scripts that complete commands, options and their values in bash, zsh and fish.

They are made from the parsers of the commands and have no part that runs Python, so that completion is instant.
Packages that do the same (shtab, argcomplete) expect one parser with subcommands, and know no fish or start Python for
each tab.
"""

import re


def bash(commands):
    """Return the script for bash.

    Parameters
    ----------
    commands : dict of str to (str, list of OptionWords, list of str)
        For each command what it does, its options, and words that may follow it in place of files.
    """
    names = " ".join([*commands, "--help", "--version"])
    values, words = [], []
    for name, (_, options, more) in commands.items():
        words.append(f'    {name}) words="{" ".join([*_forms(options), *more])}" ;;')
        values += [
            f'    "{name} {form}") COMPREPLY=($(compgen -W "{" ".join(option.values)}" -- "$current")); return ;;'
            for option in options
            if option.values
            for form in option.forms
        ]
    return f"""\
# Completion of widemargin for bash: source it, or keep it in a folder that bash-completion reads.
_widemargin() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command="${{COMP_WORDS[1]}}" words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{names}" -- "$current"))
    return
  fi
  case "$command $previous" in
{_lines(values)}
  esac
  case "$command" in
{_lines(words)}
  esac
  if [[ "$current" == -* ]] || [[ "$command" == as || "$command" == completion ]] && [ "$COMP_CWORD" -eq 2 ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _widemargin widemargin
"""


def zsh(commands):
    """Return the script for zsh; `commands` as for `bash`."""
    described = [f"    '{name}:{_quoted(text, ':')}'" for name, (text, _, _) in commands.items()]
    cases = []
    for name, (_, options, more) in commands.items():
        specs = [_zsh_option(form, option) for option in options for form in option.forms]
        first = f"'1:word:({' '.join(more)})' " if more else ""
        cases.append(f"    {name}) _arguments -S {' '.join(specs)} {first}'*:file:_files' ;;")
    return f"""\
#compdef widemargin
# Completion of widemargin for zsh: keep it as _widemargin in a folder of fpath.
_widemargin() {{
  local -a commands
  commands=(
{_lines(described)}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{_lines(cases)}
  esac
}}
if [ "$funcstack[1]" = _widemargin ]; then _widemargin "$@"; else compdef _widemargin widemargin; fi
"""


def fish(commands):
    """Return the script for fish; `commands` as for `bash`."""
    lines = ["# Completion of widemargin for fish: keep it as widemargin.fish in a folder of completions."]
    for name, (text, options, more) in commands.items():
        lines.append(f"complete -c widemargin -n __fish_use_subcommand -f -a {name} -d '{_quoted(text)}'")
        chosen = f"complete -c widemargin -n '__fish_seen_subcommand_from {name}'"
        lines += [f"{chosen} -f -a '{' '.join(more)}'"] if more else []
        lines += [f"{chosen} {_fish_option(option)}" for option in options]
    return "\n".join(lines) + "\n"


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}


def _forms(options):
    return [form for option in options for form in option.forms]


def _lines(lines):
    return "\n".join(lines)


def _quoted(text, more=""):
    """Return the first sentence of a help text for single quotes; characters of `more` are escaped, too."""
    text = re.split(r"(?<=[a-z)])[.;] ", text.replace("%%", "%"))[0].replace("'", "’")
    return re.sub(rf"([\\{re.escape(more)}])" if more else r"(\\)", r"\\\1", text)


def _zsh_option(form, option):
    """Return the specification of one form of an option for zsh's _arguments."""
    value = f":value:({' '.join(option.values)})" if option.values else ":value:_files" if option.takes_value else ""
    return f"'{form}[{_quoted(option.help, ':[]')}]{value}'"


def _fish_option(option):
    """Return the words for an option after `complete`."""
    parts = [f"-l {form[2:]}" if form.startswith("--") else f"-s {form[1:]}" for form in option.forms]
    parts += [f"-x -a '{' '.join(option.values)}'"] if option.values else ["-r"] if option.takes_value else []
    return f"{' '.join(parts)} -d '{_quoted(option.help)}'"
