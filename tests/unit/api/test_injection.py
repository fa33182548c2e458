"""What is asked to be done to calls: read, and brought to what is captured of each."""

from __future__ import annotations

import pytest

from clew.api.description import Function, Parameter
from clew.api.descriptions import Descriptions
from clew.api.injection import FOREVER, Argument, When, injected_words, parse_injection
from clew.api.injection_plan import choose_system_calls, plan_injection
from clew.api.reading import load_built_in
from clew.capture.compiler import compile_capture
from clew.capture.interpreter import interpret
from clew.dataclass import replace
from clew.errors import UsageError
from clew.protocol._constants import Injected, InjectField
from tests.unit.capture.places import MACHINE, MEMORY_START, MadeUpPlace

SYSTEM = replace(MACHINE, arguments=("rdi", "rsi", "rdx", "r10", "r8", "r9"), is_interpreted=True)


@pytest.fixture(scope="module")
def descriptions() -> Descriptions:
    return load_built_in()


def test_all_parts_are_read() -> None:
    spec = parse_injection(
        r"openat,libc*!open:path=/a\:b:fd=3:flags&O_CREAT:mode=0:if=arg1 == 1:when=3..9+2:error=ENOENT"
    )
    assert spec.what == ("openat", "libc*!open")
    assert (spec.path, spec.fd, spec.condition, spec.error) == ("/a:b", 3, "arg1 == 1", 2)
    assert spec.arguments == (Argument("flags", "O_CREAT", True), Argument("mode", "0", False))
    assert spec.when == When(3, 9, 2)
    spec = parse_injection("read:retval=-0x1:signal=USR1:delay_enter=1.5ms:delay_exit=7")
    assert (spec.result, spec.signal, spec.delay_enter_ns, spec.delay_exit_ns) == (-1, 10, 1_500_000, 7_000)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("3", When(3, 3)),
        ("3+", When(3)),
        ("3+2", When(3, FOREVER, 2)),
        ("3..9", When(3, 9)),
        ("3..9+", When(3, 9)),
        ("3..9+2", When(3, 9, 2)),
    ],
)
def test_calls_are_counted_as_strace_has_it(text: str, when: When) -> None:
    assert parse_injection(f"a:error=1:when={text}").when == when


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "which calls"),
        ("open,:error=EIO", "which calls"),
        ("open", "what is to be done"),
        ("open:path=/a", "what is to be done"),
        ("libc:malloc:retval=0", "IMAGE!NAME"),
        ("open:error=ENOSUCH", "no error is called so"),
        ("open:error=errno", "no error is called so"),
        ("open:error=0", "from 1 to 4095"),
        ("open:error=4096", "from 1 to 4095"),
        ("open:error=EIO:error=EIO", "said twice"),
        ("open:retval=1:result=1", "said twice"),
        ("open:retval=x", "no number"),
        ("open:signal=NOSUCH", "no signal is called so"),
        ("open:signal=65", "from 1 to 64"),
        ("open:delay_enter=1h", "a time is"),
        ("open:delay_enter=-1", "a time is"),
        ("open:delay_enter=9999999999999s", "nobody waits so long"),
        ("open:error=EIO:when=0", "counted from 1"),
        ("open:error=EIO:when=5..4", "counted from 1"),
        ("open:error=EIO:when=1+0", "a step is 1"),
        ("open:error=EIO:when=a", "FIRST"),
        ("open:error=EIO:path=", "nothing is said"),
        ("open:error=EIO:syscall=getpid", "not done here"),
        ("open:error=EIO\\", "a backslash at the end"),
    ],
)
def test_mistakes_are_told(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_injection(text)


def names_of(text: str, descriptions: Descriptions) -> set[str]:
    return {
        descriptions.system_calls[number].name for number in choose_system_calls(parse_injection(text), descriptions)
    }


def test_calls_are_chosen_by_name_pattern_and_kind(descriptions: Descriptions) -> None:
    assert names_of("openat,close:error=EIO", descriptions) == {"openat", "close"}
    assert names_of("getp?id:error=EIO", descriptions) == {"getppid", "getpgid"}
    processes = names_of("%process:error=EPERM", descriptions)
    # What does not return has no result; what names no path is not asked for one.
    assert "execve" in processes and "exit_group" not in processes
    assert "exit_group" in names_of("%process:delay_enter=1", descriptions)
    assert names_of("exec*:path=/bin/*:error=EIO", descriptions) == {"execve", "execveat"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("opennat:error=EIO", "no system call is called 'opennat'; there is openat"),
        ("%files:error=EIO", "there are %file"),
        ("exit_group:retval=1", "does not return"),
        ("exit:delay_exit=1", "does not return"),
        ("getpid:path=/a:error=EIO", "nothing of it is a path"),
        ("getpid:fd=1:error=EIO", "nothing of it takes a descriptor"),
        ("openat:error=EIO:retval=1", "says the error, too"),
        ("openat:flag=1:error=EIO", "no parameter 'flag': it has dfd, filename"),
        ("openat:flags=O_NOSUCH:error=EIO", "no name of open_flags"),
        ("openat:filename&1:error=EIO", "leads to no number"),
        ("read:buf=a:error=EIO", "leads to no number and to no string"),
    ],
)
def test_what_can_not_be_done_to_a_call_is_told(text: str, why: str, descriptions: Descriptions) -> None:
    with pytest.raises(UsageError, match=why):
        choose_system_calls(parse_injection(text), descriptions)


def test_functions_fail_as_their_description_has_it(descriptions: Descriptions) -> None:
    path = Parameter(0, "path", "const char *", "path")
    result = Parameter(-1, "result", "int", "int")

    def fields(text: str, error: str) -> tuple[str, ...]:
        function = Function("it", "File", (path, result), error=error)
        return plan_injection(parse_injection(text), function, descriptions).expressions

    of = fields("a!it:error=ENOENT", "minus_one_errno")
    assert (of[InjectField.RESULT], of[InjectField.ERRNO_ADDRESS], of[InjectField.ERRNO]) == (
        str((1 << 64) - 1),
        "&errno",
        "2",
    )
    assert fields("a!it:error=ENOENT", "null_errno")[InjectField.RESULT] == "0"
    of = fields("a!it:error=ENOENT:retval=7", "none")
    assert (of[InjectField.RESULT], of[InjectField.ERRNO]) == ("7", "2")
    assert fields("a!it:retval=7", "none")[InjectField.ERRNO_ADDRESS] == "0"
    with pytest.raises(UsageError, match="no description says how it fails"):
        fields("a!it:error=ENOENT", "none")


def test_only_behind_functions_a_delay_is_captured_besides(descriptions: Descriptions) -> None:
    for change, numbers in (("exit", {}), ("exit", {"x86_64": 1}), ("enter", {})):
        function = Function("it", "File", (Parameter(-1, "result", "int", "int"),), numbers=numbers)
        plan = plan_injection(parse_injection(f"a!it:delay_{change}=2"), function, descriptions)
        assert plan.delays_return == (change == "exit" and not numbers)
        assert plan.expressions[InjectField.DELAY_EXIT] == ("2000" if change == "exit" else "0")


def holds(text: str, descriptions: Descriptions, **registers: int) -> bool:
    (plan,) = choose_system_calls(parse_injection(text), descriptions).values()
    form = compile_capture(plan.expressions, SYSTEM, plan.condition)
    place = MadeUpPlace(b"/etc/passwd\0/tmp/\xe9\0rest", **registers)
    found = interpret(form, place)
    assert found is None or found[InjectField.WHAT] == Injected.RESULT
    return found is not None


def test_conditions_mean_what_they_say(descriptions: Descriptions) -> None:
    first, second, bad = MEMORY_START, MEMORY_START + 12, 8

    def opens(condition: str, **registers: int) -> bool:
        return holds(f"openat:{condition}:error=EIO", descriptions, **{"rdi": 0xFFFF_FF9C, "rsi": first} | registers)

    assert opens("path=/etc/*") and not opens("path=/tmp/*") and not opens("path=*", rsi=bad)
    assert opens("path=/tmp/\udce9", rsi=second) and not opens("path=/tmp/\udce8", rsi=second)
    assert opens("dfd=AT_FDCWD") and opens("dfd=-100", rdi=(1 << 64) - 100) and not opens("dfd=3")
    assert opens("fd=3", rdi=3 | 7 << 32) and not opens("fd=3", rdi=4)
    assert opens("flags=O_WRONLY|O_CREAT", rdx=0o101) and not opens("flags=O_WRONLY|O_CREAT", rdx=0o301)
    assert opens("flags&O_WRONLY|O_CREAT", rdx=0o301) and not opens("flags&O_CREAT", rdx=0o1)
    assert opens("filename=*passwd") and not opens("filename=passwd")
    assert opens("if=arg3 > 5", rdx=6) and not opens("if=arg3 > 5", rdx=5)
    assert opens("path=/etc/*:flags=0") and not opens("path=/etc/*:flags=1")
    # Of what names no path that which descriptors lead to.
    assert holds("read:path=/etc/*:error=EIO", descriptions, rdi=3)
    assert not holds("read:path=/etc/*:error=EIO", descriptions, rdi=4)
    assert holds("link:path=/tmp/*:error=EIO", descriptions, rdi=first, rsi=second)


def test_words_say_what_was_done() -> None:
    assert injected_words(0) == []
    assert injected_words(Injected.RESULT | Injected.DELAY_EXIT) == ["result", "delay_exit"]
