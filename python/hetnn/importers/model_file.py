"""What a file holds, by its first bytes: models that hetnn reads, and those that others made and it does not."""

from __future__ import annotations

import zipfile

from hetnn.errors import InvalidModel
from hetnn.files import open_file

EXPECTED = "a .pt2 (torch.export.save), an .onnx, a .tflite, a .hetnn or a text of hetnn's IR"

_EXPORT = "Export the model with torch.export.export and torch.export.save."
# First bytes at a place -> what such a file is, and what to do.
_FOREIGN = {
    (0, b"\x80\x02"): ("a pickle, as torch.save wrote it", _EXPORT),
    (0, b"\x89HDF"): ("an HDF5 file", "Convert the model to ONNX."),
    (0, b"GGUF"): ("a GGUF file, which holds weights alone", _EXPORT),
    (0, b"\x93NUMPY"): ("a numpy array", _EXPORT),
    (0, b"\x7fELF"): ("a program or library of this machine", _EXPORT),
}


def is_tflite(head: bytes) -> bool:
    """Whether a file that begins so is a TFLite model."""
    return head[4:8] == b"TFL3"


def kind_of(path: str) -> str:
    """`pt2`, `onnx`, `tflite`, `hetnn` or `ir`. InvalidModel says what another file is; OSError as `open` does."""
    if not path:
        raise InvalidModel(f"the path of the model is empty; expected {EXPECTED}.")
    with open_file(path) as file:
        head = file.read(256)
    if not head:
        raise InvalidModel(f"'{path}' is empty; expected {EXPECTED}.")
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_archive(path)
    if path.endswith(".onnx"):
        return "onnx"
    if path.endswith(".tflite") or is_tflite(head):
        return "tflite"
    if path.endswith(".hetnn") or (head[8:9] == b"{" and b'"hetnn/' in head):
        return "hetnn"
    if head.lstrip(b"\xef\xbb\xbf").lstrip().startswith((b"graph ", b"//", b"#")):
        return "ir"
    for (place, mark), (what, advice) in _FOREIGN.items():
        if head[place : place + len(mark)] == mark:
            raise InvalidModel(f"'{path}' is {what}; expected {EXPECTED}. {advice}")
    if head[8:9] == b"{":
        raise InvalidModel(f"'{path}' is a safetensors file, which holds weights alone; expected {EXPECTED}. {_EXPORT}")
    if head[:1] == b"\x08":  # the version, with which every ONNX model begins
        return "onnx"
    raise InvalidModel(f"'{path}' begins with {head[:8]!r}, which is no model; expected {EXPECTED}.")


def _kind_of_archive(path: str) -> str:
    """torch.save, TorchScript and torch.export.save all write zip archives."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return "pt2"  # damaged; torch says so
    exported = any("models/" in name or name.endswith("serialized_exported_program.json") for name in names)
    if not exported and any(name.endswith("data.pkl") for name in names):
        kind = "TorchScript" if any("/code/" in name for name in names) else "a checkpoint of torch.save"
        raise InvalidModel(f"'{path}' is {kind}; expected {EXPECTED}. {_EXPORT}")
    return "pt2"
