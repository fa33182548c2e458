"""What a C type and the name of an argument say of it: by which raw type it is told, and how much it leads to.

Runs in the controller and where descriptions are generated. Pure rules, for all calls alike: those of kernels and of
libraries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from clew.api.vocabulary import POINTERS

__all__ = ["BY_TYPE", "ENTITIES", "FILE_NAMES", "count_of", "plain_type", "raw_type_of"]

FILE_NAMES: Final = re.compile(r"(file|path|old|new)?name|\w*pathname|path|special(file)?|new_root|put_old")
_STRINGS: Final = re.compile(r"_?(type|description|key|fs_name|callout_info)|u_name|uname|uargs")
_BUFFERS: Final = re.compile(r"\w*(buf|buff|msg_ptr|value|payload|list|optval)|name")
_DESCRIPTORS: Final = re.compile(r"\w*fd|fd_?in|fd_?out|fildes|mqdes")
_LENGTHS: Final = re.compile(r"\w*(len|size|count|bufsiz|msgsz|bytecount)")
_COUNTS: Final = re.compile(r"vlen|\w*iovcnt|nr_segs|nfds|maxevents|nsops|nr|gidsetsize|nr_\w+")
_ADDRESSES: Final = re.compile(r"\w*addr|start|brk|newsp|tls")
_FLAGS: Final = re.compile(r"\w*flags?|oflag|\w*flg")

BY_TYPE: Final = {
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
ENTITIES: Final = {
    "path": ("Entity", "File"),
    "sockaddr": ("Entity", "Address"),
    "fd": ("Reference", "File"),
    "pid": ("Reference", "Process"),
    "tid": ("Reference", "Thread"),
    "mode": ("EntityModifier", None),
}
"""`Type` and `EntityType` by raw type, where they are not `Info` and none."""


def plain_type(c_type: str) -> str:
    """A C type without `const`."""
    return " ".join(word for word in c_type.split() if word != "const")


def raw_type_of(c_type: str, name: str) -> str:
    """The raw type by which an argument is told, by its C type and, where that says little, its name."""
    plain = plain_type(c_type)
    if "*" in plain:
        return _raw_type_of_pointer(plain, name, is_const="const" in c_type)
    if plain in BY_TYPE:
        return BY_TYPE[plain]
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
        return "path" if FILE_NAMES.fullmatch(name) else "string" if _STRINGS.fullmatch(name) else "buffer"
    if target == "wchar_t":
        return "wide_string" if is_const else "pointer"
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


def count_of(arguments: Sequence[tuple[str, str]], index: int, raw_type: str) -> dict[str, int]:
    """How much a pointer leads to, if the argument behind it says so; `arguments` are C types and names.

    Keys and values are those of a parameter in a description file: `Count` or `Bytes`, and an index.
    """
    if index + 1 == len(arguments):
        return {}
    c_type, name = arguments[index + 1]
    is_number = "*" not in c_type
    if raw_type == "sockaddr":
        return {"Bytes": index + 1}
    if raw_type in POINTERS and is_number and _COUNTS.fullmatch(name) and raw_type != "buffer":
        return {"Count": index + 1}
    if raw_type in ("buffer", "struct", "sigset") and is_number and _LENGTHS.fullmatch(name):
        return {"Bytes": index + 1}
    return {}
