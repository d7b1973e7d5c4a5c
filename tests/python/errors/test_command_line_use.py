"""Bad use of the command line: one message on stderr, one document on stdout with --json, the right exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hetnn
from hetnn.cli import COMMANDS, main
from hetnn.importers.model_file import kind_of


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = main(argv)
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "name a command: compile, run"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["compile"], "the following arguments are required: model, -o/--output"),
        (["plan"], "give either a model or --problem FILE"),
        (["plan", "m.pt2", "--problem", "p.json"], "give either a model or --problem FILE"),
        (["run", "m.hetnn", "--colour"], "unrecognized arguments: --colour"),
        (["run", "m.hetnn", "--threads", "many"], "argument --threads: invalid int value: 'many'"),
    ],
)
def test_bad_use(capsys: pytest.CaptureFixture[str], argv: list[str], message: str) -> None:
    status, out, err = call(capsys, *argv)
    assert (status, out) == (2, "")
    assert message in err

    status, out, err = call(capsys, *argv, "--json")
    error = json.loads(out)["error"]
    assert status == 2
    assert (error["kind"], error["where"]) == ("BadUse", None)
    assert message in error["message"]
    assert message in err


@pytest.mark.parametrize("command", ["compile", "run", "bench"])
def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str], command: str) -> None:
    more = ["-o", "out.hetnn"] if command == "compile" else []
    status, out, _ = call(capsys, command, "absent.pt2", *more, "--json")
    error = json.loads(out)["error"]
    assert status == 2
    assert error["message"] == "cannot open 'absent.pt2': No such file or directory. Check the path."


def test_a_bug_is_told_apart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    problem = tmp_path / "p.json"
    problem.write_text("{}")

    def broken(*_: object, **__: object) -> None:
        raise KeyError("nodes")

    monkeypatch.setattr(hetnn, "plan_problem", broken, raising=False)
    status, out, err = call(capsys, "plan", "--problem", str(problem), "--json")
    assert status == 4
    assert json.loads(out)["error"]["kind"] == "InternalError"
    assert "Traceback" in err
    assert "This is a bug in hetnn" in err


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        status, out, _ = call(capsys, command, "--help")
        assert status == 0
        assert f"usage: hetnn {command}" in out
        assert "--json" in out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pt2", b"", "'a.pt2' is empty; expected a .pt2"),
        ("a.bin", b"\x7fELF\x02", "'a.bin' is a program or library of this machine; expected a .pt2"),
        ("a.bin", b"\x01\x02", r"'a.bin' begins with b'\x01\x02', which is no model"),
    ],
)
def test_a_file_that_is_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    with pytest.raises(hetnn.InvalidModel) as raised:
        kind_of(name)
    assert message in str(raised.value)


def test_a_zip_that_is_no_exported_program(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.pt2").write_bytes(b"PK\x03\x04 and then nothing of use")
    status, out, _ = call(capsys, "compile", "a.pt2", "-o", "a.hetnn", "--json")
    error = json.loads(out)["error"]
    assert (status, error["kind"]) == (2, "InvalidModel")
    assert "torch could not read 'a.pt2' as an exported program" in error["message"]
    assert not Path("a.hetnn").exists()
