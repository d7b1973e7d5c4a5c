"""The command line `hetnn`. Each command is one file of this folder with `add_arguments(parser)` and `run(args)`.

`run` returns an `Answer`; it prints nothing on stdout. `--json` and `--quiet` are added to every command here. A
command is imported only when it is called, so that `hetnn --help` is quick.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import hetnn
from hetnn.cli.answer import BAD_INPUT, BUG, DONE, UNSUPPORTED, Answer, BadUse
from hetnn.terminal import printable

# Command -> what it is for. The file is hetnn/cli/<command>.py, with _ for -.
COMMANDS = {
    "compile": "compile a model into one .hetnn file",
    "run": "run a model or a .hetnn file on arrays",
    "plan": "show where each node would run, without compiling; or plan an abstract problem",
    "check": "list everything in a model that the target cannot do",
    "export": "write a model, or what a device is given of it, as an ONNX or TOSA file",
    "export-device": "write what firmware of an Ethos-U needs of a .hetnn file",
    "calibrate": "measure this machine's kernels once, for the times that plans predict",
    "report": "describe a compiled model: placement, reasons, bytes, time",
    "disassemble": "print the NPU command streams of a .hetnn file",
    "schedule": "print how the NPU computes the layers of a .hetnn file; compile takes it back",
    "unpack": "take a .hetnn file apart into files to look at and alter",
    "pack": "put the files of unpack together, with fitting hashes",
    "verify": "say what is wrong with a .hetnn file, without running it",
    "config": "show what C and C++ programs are built with",
    "targets": "list the known targets, or describe one",
    "bench": "time a model: the CPU measured, an NPU by its clock",
    "inspect": "show what a model or .hetnn file takes and gives, its sizes, devices and subgraphs",
    "profile": "show what each kernel and layer takes on its device",
    "trace": "write one run as a timeline for Perfetto",
    "explore": "open a model in Model Explorer, or write the files that it reads",
    "compare": "compare the values inside a compiled model with a reference",
    "bisect": "find the smallest part of a model that is wrong by itself",
    "replay": "compile and run a part that bisect wrote",
    "simulate": "count cycles on the NPU's timing model",
    "serve": "answer the Open Inference Protocol over HTTP and gRPC",
    "device": "run subprograms on this machine's devices for executables elsewhere",
    "store": "keep executables by network id",
    "completion": "print what a shell needs to complete commands, options and files",
    "allocate": "place buffers with lifetimes in a memory of fixed size",
}


class _Parser(argparse.ArgumentParser):
    """Raises `BadUse` instead of leaving the process."""

    def error(self, message: str) -> NoReturn:
        raise BadUse(f"{message}\n{self.format_usage().strip()}")


def build_parser(names: Sequence[str]) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser and its commands; only those among `names` get their arguments, since that imports them."""
    parser = _Parser(prog="hetnn", description="Compiles neural networks into one program for several processors.")
    parser.add_argument("--version", action="version", version=f"hetnn {hetnn.__version__}")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    choices = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    commands: dict[str, argparse.ArgumentParser] = {}
    for name, summary in COMMANDS.items():
        command = choices.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        command.add_argument("--json", action="store_true", help="print one JSON document on stdout")
        command.add_argument("--quiet", action="store_true", help="no progress on stderr")
        if name in names:
            _module(name).add_arguments(command)
        commands[name] = command
    return parser, commands


def _module(command: str) -> Any:
    return importlib.import_module(f"hetnn.cli.{command.replace('-', '_')}")


def _parse(argv: Sequence[str]) -> tuple[str, argparse.Namespace]:
    parser, _ = build_parser(argv)
    args = parser.parse_args(argv)
    if args.command is None:
        raise BadUse(f"name a command: {', '.join(COMMANDS)}")
    return str(args.command), args


def _failure(error: BaseException) -> tuple[str, int]:
    """The kind and the exit code of an error."""
    if isinstance(error, BadUse):
        return "BadUse", BAD_INPUT
    if isinstance(error, (hetnn.Unsupported, hetnn.DoesNotFit)):
        return error.kind, UNSUPPORTED
    if isinstance(error, hetnn.InternalError):
        return error.kind, BUG
    if isinstance(error, (hetnn.Error, OSError)):
        return (error.kind if isinstance(error, hetnn.Error) else "InvalidModel"), BAD_INPUT
    return "InternalError", BUG


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot open '{os.fsdecode(error.filename)}': {error.strerror}. Check the path."
    if isinstance(error, (hetnn.Error, BadUse)):
        return str(error)
    return f"{type(error).__name__}: {error}. This is a bug in hetnn; please report it."


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Exit code: 0 done, 1 a check failed, 2 bad use or input, 3 unsupported, 4 a bug."""
    argv = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in argv
    try:
        command, args = _parse(argv)
        with contextlib.redirect_stdout(sys.stderr):  # a library that prints would spoil the one document on stdout
            answer: Answer = _module(command).run(args)
        answer.print(as_json)
        return answer.status
    except SystemExit as stop:  # argparse after --help and --version
        return DONE if stop.code is None else int(stop.code)
    except BrokenPipeError:  # the reader of our output left early, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        sys.stderr.write("hetnn: interrupted\n")
        return 130
    except Exception as error:
        kind, status = _failure(error)
        if status == BUG:
            traceback.print_exc()
        sys.stderr.write(printable(f"hetnn: {_message(error)}\n"))
        if as_json:
            where = error.where if isinstance(error, hetnn.Error) else None
            sys.stdout.write(json.dumps({"error": {"kind": kind, "message": _message(error), "where": where}}) + "\n")
        return status


def console() -> NoReturn:
    """The program `hetnn`: `main`, and out without taking apart what the process holds, a tenth of a short command."""
    gc.set_threshold(100_000)  # models and modules are many objects that stay
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's idle threads would spin beside hetnn's
    status = main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BrokenPipeError):  # their reader left early
            stream.flush()
    os._exit(status)
