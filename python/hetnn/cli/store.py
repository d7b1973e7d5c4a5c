"""`hetnn store`: keeps executables by network id, shows what each is made of, and says which version runs."""

from __future__ import annotations

import argparse
from typing import Any

from hetnn.cli.answer import CHECK_FAILED, DONE, Answer, BadUse
from hetnn.cli.model import add_compile_arguments, load_or_compile
from hetnn.cli.progress import Progress
from hetnn.report.text import table
from hetnn.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The store's folder, and one of the actions with arguments of its own."""
    parser.add_argument("--path", required=True, metavar="DIR", help="the store's folder; made when it is not there")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, summary: str) -> argparse.ArgumentParser:
        made = actions.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        made.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        made.add_argument("--quiet", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        return made

    add = action("add", "keep a .hetnn file, or compile a model and keep that")
    add.add_argument("id", metavar="ID")
    add.add_argument("model", help=".hetnn, .pt2, .onnx, .tflite or IR text")
    add.add_argument("--version", type=int, metavar="N", help="the version (default: the one after the newest)")
    add_compile_arguments(add)
    action("list", "list the networks")
    action("show", "show a network's nodes, subgraphs and devices").add_argument("id", metavar="ID[:N]")
    action("rm", "forget a network, or one version of it").add_argument("id", metavar="ID[:N]")
    action("verify", "read every byte and list what is damaged; exit code 1 when anything is")
    action("gc", "delete the files that no version names")
    deploy = action("deploy", "make a version, by default the newest, the one that runs, ready ahead of requests")
    deploy.add_argument("id", metavar="ID[:N]")
    deploy.add_argument(
        "devices",
        nargs="*",
        metavar="DEVICE[=HOST:PORT]",
        help="all that it runs on, or those that stand behind a device server, with its address",
    )
    deploy.add_argument("--token-file", metavar="F", help="of the device servers' token")
    deploy.add_argument("--timeout", type=float, metavar="S", help="seconds that a run of such a device may take")
    action("undeploy", "let the newest version run again").add_argument("id", metavar="ID[:N]")


def run(args: argparse.Namespace) -> Answer:
    """Does what the action says; each answers with a document of its own. Exit code 1 where `verify` finds damage."""
    return _ACTIONS[args.action](Store(args.path), args)


def _named(text: str) -> tuple[str, int | None]:
    """`ID:N` → (ID, N); `ID` → (ID, None)."""
    id, colon, number = text.partition(":")
    if colon and not (number.isascii() and number.isdecimal()):
        raise BadUse(f"a version is a number, as in {id}:2; got '{text}'")
    return id, int(number) if colon else None


def _add(store: Store, args: argparse.Namespace) -> Answer:
    with Progress("store", args.quiet) as progress:
        executable = load_or_compile(args, progress)
        version = store.add(args.id, executable, args.version)
    found = store.find(args.id, version)
    document = {key: found[key] for key in ("network", "version", "hash", "target", "bytes")}
    return Answer(document, f"{args.id} version {version}: {found['bytes']} bytes for {found['target']}")


def _list(store: Store, args: argparse.Namespace) -> Answer:
    document = store.list()
    rows = [[row["network"], ", ".join(map(str, row["versions"])), str(row["bytes"])] for row in document["networks"]]
    return Answer(document, table(["network", "versions", "bytes"], rows))


def _show(store: Store, args: argparse.Namespace) -> Answer:
    document = store.association(*_named(args.id))
    at = document.get("at", {})
    parts = [("", document), *((f"{body['of']}/body ", body) for body in document.get("bodies", []))]
    rows = [
        [
            f"{of}{row['index']}",
            row["device"],
            ", ".join(row["supports"]),
            ", ".join(f"{name} at {at[name]}" if name in at else name for name in row["deployed_on"]),
            ", ".join(map(str, row["depends_on"])),
            str(len(row["nodes"])),
        ]
        for of, part in parts
        for row in part["subgraphs"]
    ]
    head = f"{document['network']} version {document['version']}, {document['hash']}, for {document['target']}"
    return Answer(document, f"{head}\n{table(['subgraph', 'device', 'supports', 'deployed', 'after', 'nodes'], rows)}")


def _rm(store: Store, args: argparse.Namespace) -> Answer:
    id, version = _named(args.id)
    store.remove(id, version)
    return _done(id, version, "removed")


def _done(id: str, version: int | None, what: str) -> Answer:
    document: dict[str, Any] = {"network": id, "version": version, what: True}
    return Answer(document, f"{id}{'' if version is None else f' version {version}'} {what}")


def _verify(store: Store, args: argparse.Namespace) -> Answer:
    document = store.verify()
    rows = [[str(row["network"]), str(row["version"]), row["what"]] for row in document["damaged"]]
    text = table(["network", "version", "what"], rows) if rows else "nothing is damaged"
    return Answer(document, text, DONE if document["ok"] else CHECK_FAILED)


def _gc(store: Store, args: argparse.Namespace) -> Answer:
    document = store.gc()
    return Answer(document, f"{document['files']} files deleted, {document['bytes']} bytes")


def _deploy(store: Store, args: argparse.Namespace) -> Answer:
    id, version = _named(args.id)
    elsewhere = dict(text.split("=", 1) for text in args.devices if "=" in text)
    if elsewhere and args.token_file is None:
        raise BadUse("DEVICE=HOST:PORT needs --token-file, the file of the device server's token")
    place = {"token_file": args.token_file, **({} if args.timeout is None else {"timeout_s": args.timeout})}
    here = [text for text in args.devices if "=" not in text]
    devices = [*here, *elsewhere] if here else []
    store.deploy(id, devices, version, {device: {"at": at, **place} for device, at in elsewhere.items()})
    return _show(store, args)


def _undeploy(store: Store, args: argparse.Namespace) -> Answer:
    id, version = _named(args.id)
    store.undeploy(id, version)
    return _done(id, version, "undeployed")


_ACTIONS = {
    "add": _add,
    "list": _list,
    "show": _show,
    "rm": _rm,
    "verify": _verify,
    "gc": _gc,
    "deploy": _deploy,
    "undeploy": _undeploy,
}
