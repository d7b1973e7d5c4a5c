"""`hetnn completion`: what a shell needs to complete commands, options and files, made by shtab."""

from __future__ import annotations

import argparse
from typing import Any

from hetnn.cli.answer import Answer
from hetnn.errors import Unsupported

SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=SHELLS, help='for bash: eval "$(hetnn completion bash)"')


def run(args: argparse.Namespace) -> Answer:
    """`script`, to be evaluated by the shell. Unsupported where shtab is not installed."""
    try:
        import shtab
    except ImportError as error:
        raise Unsupported("completion needs shtab; install it with `pip install 'hetnn[completion]'`.") from error
    from hetnn.cli import COMMANDS, build_parser

    parser, commands = build_parser(list(COMMANDS))
    for command in commands.values():
        _complete_files(command, shtab)
    script: str = shtab.complete(parser, args.shell)
    return Answer({"script": script}, script)


def _complete_files(parser: argparse.ArgumentParser, shtab: Any) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _complete_files(inner, shtab)
            continue
        takes = str(action.metavar or action.dest)
        if takes == "FOLDER":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif takes == "model" or "FILE" in takes or takes.startswith(("MODEL", "OUT")):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
