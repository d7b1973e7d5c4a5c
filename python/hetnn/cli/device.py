"""`hetnn device serve`: runs subprograms on this machine's devices for executables elsewhere."""

from __future__ import annotations

import argparse
import json
import signal
import ssl
import sys
import threading

from hetnn.cli.answer import Answer, BadUse
from hetnn.errors import InvalidModel
from hetnn.remote.server import DeviceServer
from hetnn.remote.wire import MOST_PAYLOAD_BYTES, read_token
from hetnn.target import resolve_target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is served, and where."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    serve = actions.add_parser("serve", help="run subprograms for executables elsewhere", description=__doc__)
    serve.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    serve.add_argument("--quiet", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    serve.add_argument("--device", required=True, metavar="T", help="the devices here, as a target names them")
    serve.add_argument(
        "--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="port 0 picks one (default: %(default)s)"
    )
    serve.add_argument("--token-file", required=True, metavar="F", help="one line of text that clients must know")
    serve.add_argument("--threads", type=int, metavar="N", help="CPU threads of a run, at most")
    serve.add_argument(
        "--most-code-bytes",
        type=int,
        default=MOST_PAYLOAD_BYTES,
        metavar="N",
        help="subprograms kept, in bytes; those used least are sent again (default: %(default)s)",
    )
    serve.add_argument("--tls-cert", metavar="F", help="certificate chain in PEM: connections are by TLS")
    serve.add_argument("--tls-key", metavar="F", help="its private key")


def run(args: argparse.Namespace) -> Answer:
    """Serves until SIGTERM or SIGINT; one JSON line on stdout says when it is ready: {"ready": true, "port"}."""
    if (args.tls_cert is None) != (args.tls_key is None):
        raise BadUse("--tls-cert and --tls-key come together")
    server = DeviceServer(
        [device for device in resolve_target(args.device)["devices"] if device["kind"] != "cpu"],
        read_token(args.token_file),
        args.listen,
        tls=None if args.tls_cert is None else _tls(args.tls_cert, args.tls_key),
        threads=args.threads,
        most_code_bytes=args.most_code_bytes,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.end).start())
    assert sys.__stdout__ is not None
    sys.__stdout__.write(json.dumps({"ready": True, "port": server.port}) + "\n")
    sys.__stdout__.flush()
    server.serve()
    return Answer(None, "")


def _tls(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidModel(f"'{certificate}' and '{key}' are no certificate and its key: {error}.") from error
    return context
