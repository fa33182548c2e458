"""What a C type and the name of an argument say of it: by which raw type it is told, and which way it goes.

Runs on a developer's machine. Rules for all calls alike; what holds for single calls is in `sources/hints.json`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from clew.api.description import POINTERS
from clew.api.generate.sources import Argument

__all__ = ["count_of", "describe_argument", "raw_type_of"]

_FILE_NAMES: Final = re.compile(r"(file|path|old|new)?name|\w*pathname|path|special(file)?|new_root|put_old")
_STRINGS: Final = re.compile(r"_?(type|description|key|fs_name|callout_info)|u_name|uname|uargs")
_BUFFERS: Final = re.compile(r"\w*(buf|buff|msg_ptr|value|payload|list|optval)|name")
_DESCRIPTORS: Final = re.compile(r"\w*fd|fd_?in|fd_?out|fildes|mqdes")
_LENGTHS: Final = re.compile(r"\w*(len|size|count|bufsiz|msgsz|bytecount)")
_COUNTS: Final = re.compile(r"vlen|\w*iovcnt|nr_segs|nfds|maxevents|nsops|nr|gidsetsize|nr_\w+")
_ADDRESSES: Final = re.compile(r"\w*addr|start|brk|newsp|tls")
_FLAGS: Final = re.compile(r"\w*flags?|oflag|\w*flg")

_BY_TYPE: Final = {
    "size_t": "size",
    "loff_t": "offset",
    "off_t": "offset",
    "umode_t": "mode",
    "pid_t": "pid",
    "uid_t": "uid",
    "gid_t": "gid",
    "clockid_t": "clock",
    "key_t": "hex",
    "aio_context_t": "hex",
    "rwf_t": "flags",
    "cap_user_header_t": "struct",
    "cap_user_data_t": "struct",
}
_BY_NAME: Final = ((_DESCRIPTORS, "fd"), (_FLAGS, "flags"))
_BY_OTHER_NAME: Final = {"sig": "signal", "mode": "mode", "which_clock": "clock", "clockid": "clock", "pid": "pid"}
_SETS: Final = {"sigset_t": "sigset", "fd_set": "bits"}
_INTEGERS: Final = {
    "long": "long",
    "unsigned long": "ulong",
    "__u64": "ulong",
    "u64": "ulong",
    "unsigned int": "uint",
    "unsigned": "uint",
    "u32": "uint",
    "__u32": "uint",
}
_ENTITIES: Final = {
    "path": ("Entity", "File"),
    "sockaddr": ("Entity", "Address"),
    "fd": ("Reference", "File"),
    "pid": ("Reference", "Process"),
    "tid": ("Reference", "Thread"),
    "mode": ("EntityModifier", None),
}


def _plain(c_type: str) -> str:
    return " ".join(word for word in c_type.split() if word != "const")


def raw_type_of(argument: Argument) -> str:
    """The raw type by which an argument is told, by its C type and, where that says little, its name."""
    plain, name = _plain(argument.c_type), argument.name
    if "*" in plain:
        return _raw_type_of_pointer(plain, name, is_const="const" in argument.c_type)
    if plain in _BY_TYPE:
        return _BY_TYPE[plain]
    for pattern, raw_type in _BY_NAME:
        if pattern.fullmatch(name):
            return raw_type
    if name in _BY_OTHER_NAME:
        return _BY_OTHER_NAME[name]
    if plain == "unsigned long" and _ADDRESSES.fullmatch(name):
        return "pointer"
    return "enum" if plain.startswith("enum ") else _INTEGERS.get(plain, "int")


def _raw_type_of_pointer(plain: str, name: str, *, is_const: bool) -> str:
    target = plain.removesuffix("*").strip()
    if target == "char":
        if not is_const:
            return "buffer"
        return "path" if _FILE_NAMES.fullmatch(name) else "string" if _STRINGS.fullmatch(name) else "buffer"
    if target == "void":
        return "buffer" if _BUFFERS.fullmatch(name) else "pointer"
    if target.endswith("timespec"):
        return "timespec"
    if target == "struct sockaddr":
        return "sockaddr"
    if target in _SETS:
        return _SETS[target]
    is_struct = target.startswith(("struct ", "union ")) and not target.endswith("*")
    return "struct" if is_struct or target in ("siginfo_t", "stack_t") else "pointer"


def count_of(arguments: list[Argument], index: int, raw_type: str) -> dict[str, int]:
    """How much a pointer leads to, if the argument behind it says so."""
    if index + 1 == len(arguments):
        return {}
    behind = arguments[index + 1]
    is_number = "*" not in behind.c_type
    if raw_type == "sockaddr":
        return {"Bytes": index + 1}
    if raw_type in POINTERS and is_number and _COUNTS.fullmatch(behind.name) and raw_type != "buffer":
        return {"Count": index + 1}
    if raw_type in ("buffer", "struct", "sigset") and is_number and _LENGTHS.fullmatch(behind.name):
        return {"Bytes": index + 1}
    return {}


def describe_argument(arguments: list[Argument], index: int) -> dict[str, Any]:
    """A parameter as a description file has it, as far as the rules say something of it."""
    argument = arguments[index]
    raw_type = raw_type_of(argument)
    described: dict[str, Any] = {"Index": index, "Name": argument.name, "CType": argument.c_type, "RawType": raw_type}
    kind, entity = _ENTITIES.get(raw_type, ("Info", None))
    if kind != "Info":
        described["Type"] = kind
    if entity:
        described["EntityType"] = entity
    # What the kernel may change, it mostly fills.
    if "*" in argument.c_type and "const" not in argument.c_type:
        described["Direction"] = "out"
    return described | count_of(arguments, index, raw_type)
