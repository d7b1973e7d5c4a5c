"""`hetnn serve`: answers the Open Inference Protocol over HTTP and gRPC until it is told to end."""

from __future__ import annotations

import argparse
import sys

from hetnn.cli.answer import Answer, BadUse
from hetnn.errors import Unsupported
from hetnn.files import read_text
from hetnn.serve.supervisor import Settings, Supervisor


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more; got {value}")
    return value


def _amount(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative; got {value}")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to serve, where to listen, and the limits; defaults are those of `Settings`."""
    preset = Settings()
    parser.add_argument("--store", metavar="DIR", help="serve the networks of this store")
    parser.add_argument(
        "--model", action="append", default=[], metavar="ID=FILE.hetnn", help="serve this file too; may be repeated"
    )
    parser.add_argument("--host", default=preset.host, help="address to listen on (default: %(default)s)")
    for name in ("http", "grpc", "metrics"):
        port = getattr(preset, f"{name}_port")
        parser.add_argument(
            f"--{name}-port", type=_amount, default=port, metavar="PORT", help="0 picks one (default: %(default)s)"
        )
    parser.add_argument("--workers", type=_count, default=preset.workers, metavar="N", help="processes (default: 1)")
    parser.add_argument(
        "--queue",
        type=_count,
        default=preset.queue,
        metavar="N",
        help="requests that wait or run, of all workers together; more are refused (default: %(default)s)",
    )
    parser.add_argument(
        "--max-batch",
        type=_count,
        default=preset.max_batch,
        metavar="N",
        help="most inferences of one run, where a network's batch is a symbol (default: %(default)s)",
    )
    parser.add_argument(
        "--batch-delay-us",
        type=_amount,
        default=preset.batch_delay_us,
        metavar="N",
        help="how long a request waits for others to share its run (default: %(default)s)",
    )
    parser.add_argument("--token-file", metavar="F", help="bearer tokens that clients must send one of, one a line")
    parser.add_argument("--allow-compile", action="store_true", help="keep and compile networks that clients send")
    parser.add_argument("--target", default=preset.target, help="what such networks are compiled for (default: cpu)")
    parser.add_argument(
        "--grace-s",
        type=float,
        default=preset.grace_s,
        metavar="N",
        help="how long requests may take to end after SIGTERM (default: %(default)g)",
    )
    parser.add_argument("--tls-cert", metavar="F", help="certificate chain in PEM: HTTPS and TLS for gRPC")
    parser.add_argument("--tls-key", metavar="F", help="its private key")


def run(args: argparse.Namespace) -> Answer:
    """Serves until SIGTERM or SIGINT; one JSON line on stdout says when it is ready.

    Unsupported where a package that it needs is not installed, InvalidModel for a network that cannot be opened.
    """
    if args.store is None and not args.model:
        raise BadUse("name what to serve: --store DIR, --model ID=FILE.hetnn, or both")
    if (args.tls_cert is None) != (args.tls_key is None):
        raise BadUse("--tls-cert and --tls-key come together")
    models: dict[str, str] = {}
    for text in args.model:
        name, equals, path = text.partition("=")
        if not equals or not path or name in models:
            raise BadUse(f"--model takes ID=FILE.hetnn, each id once; got '{text}'")
        models[name] = path
    tokens: tuple[str, ...] = ()
    if args.token_file is not None:
        tokens = tuple(line.strip() for line in read_text(args.token_file).splitlines() if line.strip())
        if not tokens:
            raise BadUse(f"'{args.token_file}' holds no token; nobody could ask")
    missing = [name for name in ("uvicorn", "httptools", "grpc", "google.protobuf", "ml_dtypes") if not _is_there(name)]
    if missing:
        raise Unsupported(f"serving needs {', '.join(missing)}. Install them with `pip install 'hetnn[serve]'`.")
    settings = Settings(
        store=args.store,
        models=models,
        host=args.host,
        http_port=args.http_port,
        grpc_port=args.grpc_port,
        metrics_port=args.metrics_port,
        workers=args.workers,
        queue=args.queue,
        max_batch=args.max_batch,
        batch_delay_us=args.batch_delay_us,
        tokens=tokens,
        allow_compile=args.allow_compile,
        target=args.target,
        grace_s=args.grace_s,
        tls_cert=args.tls_cert,
        tls_key=args.tls_key,
    )
    assert sys.__stdout__ is not None
    Supervisor(settings).serve(sys.__stdout__)
    return Answer(None, "")


def _is_there(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
