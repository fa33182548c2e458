"""Which technique is planned for code that is written for it, by hand."""

from __future__ import annotations

import pytest

from clew.errors import UsageError
from clew.probing.x86_64.exits import ExitKind, find_exits, iter_exit_plans, plan_exit, plan_exits
from clew.probing.x86_64.function_code import FunctionCode, decode_function
from clew.probing.x86_64.jump_bytes import TRAPS
from clew.probing.x86_64.plans import Displaced, SitePlan, Technique
from clew.probing.x86_64.sites import iter_plans, plan_site
from clew.probing.x86_64.windows import Forbidden

START = 0x401000
NEXT = b"\x55\x48\x89\xe5"


def decode(code: str, size_bytes: int | None = None, following: bytes = NEXT) -> FunctionCode:
    return decode_function(START, bytes.fromhex(code), size_bytes, following=following)


def summary(plan: SitePlan) -> tuple[Technique, int, int, list[int]]:
    """Technique, where the patch begins, how many are displaced, and guards: offsets."""
    return (
        plan.technique,
        plan.patch_address - START,
        len(plan.displaced),
        [guard - START for guard in plan.guards],
    )


@pytest.mark.parametrize(
    ("code", "offset", "expected"),
    [
        # mov eax, 1; ret
        ("b801000000 c3", 0, (Technique.JUMP, 0, 1, [])),
        # push rbp; mov rbp, rsp; push rbx
        ("55 4889e5 53 c3", 0, (Technique.JUMP_GUARDED, 0, 3, [1, 4])),
        # endbr64; push rbp; mov rbp, rsp; push rbx
        ("f30f1efa 55 4889e5 53 c3", 0, (Technique.JUMP_GUARDED, 4, 3, [5, 8])),
        # endbr64; dec edi; jnz 4; ret: what is behind endbr64 runs more often than it.
        ("f30f1efa ffcf 75fc c3", 0, (Technique.JUMP_PUNNED, 0, 1, [])),
        # xor eax, eax; ret; nop dword [rax + rax]
        ("31c0 c3 0f1f4000", 2, (Technique.JUMP_PADDING, 2, 1, [])),
        ("31c0 c3 cccccccc", 0, (Technique.JUMP_PADDING, 0, 2, [2])),
        # xor eax, eax; ret, and other code
        ("31c0 c3", 0, (Technique.JUMP_PUNNED, 0, 2, [2])),
        # dec edi; jnz 0; call rax; ret: where a call returns to stays as it is.
        ("ffcf 75fc ffd0 c3", 4, (Technique.JUMP_PUNNED, 4, 1, [])),
        # mov eax, edi; call rax; ... is displaced to its end only.
        ("89f8 ffd0 90 90", 0, (Technique.JUMP_PUNNED, 0, 2, [2])),
        # mov rax, rdi; call +0: the call is the last.
        ("4889f8 e800000000 c3", 0, (Technique.JUMP_GUARDED, 0, 2, [3])),
        # je +1; lock add [rdx], eax: somebody branches past the prefix.
        ("7401 f00102 4889d0 c3", 2, (Technique.TRAP, 2, 1, [2])),
    ],
)
def test_techniques(code: str, offset: int, expected: tuple[Technique, int, int, list[int]]) -> None:
    plans = list(iter_plans(START + offset, decode(code), {START + len(bytes.fromhex(code))}))
    if expected[0] == Technique.TRAP:
        plans = [plan for plan in plans if plan.jump is None or plan.jump.n_choices > 1]
    assert summary(plans[0]) == expected
    assert plans[0].address == START + offset
    assert plans[-1].technique == Technique.TRAP
    assert [plan.technique for plan in plans] == sorted(plan.technique for plan in plans)
    assert bool(plans[0].reason) == (expected[0] != Technique.JUMP)


def test_bytes_of_a_pun() -> None:
    # mov eax, edi; ret; push rbp ...
    plan = plan_site(START + 2, decode("89f8 c3"), {START + 3}, {Technique.JUMP_PUNNED})
    assert plan.jump is not None and plan.jump.allowed == tuple((byte,) for byte in NEXT)
    two, one = list(iter_plans(START, decode("89f8 c3"), {START + 3}, {Technique.JUMP_PUNNED}))
    assert two.jump is not None and two.jump.allowed == ((), TRAPS, (0x55,), (0x48,))
    assert one.jump is not None and one.jump.allowed == ((), (0xC3,), (0x55,), (0x48,))
    assert (len(two.displaced), len(one.displaced)) == (2, 1)


def test_no_pun_of_bytes_that_are_not_known() -> None:
    assert [plan.technique for plan in iter_plans(START, decode("c3", following=b"\x55\x48\x89"))] == [Technique.TRAP]


@pytest.mark.parametrize(
    ("code", "offset", "part"),
    [
        ("b801000000 c3", 3, f"in the middle of the instruction at {START:#x}"),
        ("b801000000 c3", 6, "not in the function"),
        ("b801000000 c3", -1, "not in the function"),
        ("90 cc c3", 1, "a breakpoint (int3) already"),
        ("c7f800000000 c3", 0, "begins a transaction"),
        ("66e90000 0000 c3", 0, "operand-size prefix"),
        ("ff1c25 00000000 c3", 0, "far transfer"),
        ("ffd4 c3", 0, "by the stack pointer"),
        ("ff5424f8 c3", 0, "its own return address replaces"),
        ("06 c3", 0, "is no instruction"),
    ],
)
def test_what_is_refused(code: str, offset: int, part: str) -> None:
    with pytest.raises(UsageError, match=part.replace("(", r"\(").replace(")", r"\)")):
        plan_site(START + offset, decode(code))


def test_forbidden_addresses() -> None:
    code = decode("55 4889e5 53 b801000000 c3 " + "cc" * 8)
    section = Forbidden(START + 4, START + 10, "is within a restartable sequence")
    with pytest.raises(UsageError, match="is within a restartable sequence"):
        plan_site(START + 5, code, forbidden=[section])
    # Neither displaced from there, nor relied on.
    plans = list(iter_plans(START, code, forbidden=[section]))
    assert {plan.technique for plan in plans} == {Technique.TRAP}
    assert all(plan.patch_end <= section.start for plan in plans)
    assert plan_site(START + 10, code, forbidden=[section]).technique == Technique.JUMP_PADDING


def test_a_breakpoint_of_somebody_else_is_not_displaced() -> None:
    plan = plan_site(START, decode("55 cc 4889e5 53 c3"))
    assert len(plan.displaced) == 1 and plan.technique == Technique.JUMP_PUNNED


def test_padding_behind_jumps_that_are_not_known_is_guarded() -> None:
    # jmp rax; ret; nop dword [rax + 0]
    plan = plan_site(START + 2, decode("ffe0 c3 0f1f4000 89f8 c3"))
    assert (plan.technique, len(plan.displaced)) == (Technique.JUMP_GUARDED, 2)
    assert list(plan.guards) == [START + 3]
    assert plan.claimed == ((START + 2, START + 7),) and plan.find_index(START + 3) == 1
    assert plan_site(START, decode("c3 0f1f4000 89f8 c3")).guards == {}


def test_exits() -> None:
    # test edi, edi; je out; ret; jmp out; jmp [rip]; jmp rax; bnd ret; ret 8; jmp START; je START + 2; ud2
    code = decode("85ff 0f84f0000000 c3 e9f0000000 ff2500000000 ffe0 f2c3 c20800 ebe3 74e3 0f0b")
    found = [(site.address - START, site.kind) for site in find_exits(code)]
    assert found == [
        (2, ExitKind.CONDITIONAL_TAIL),
        (8, ExitKind.RETURN),
        (9, ExitKind.TAIL),
        (14, ExitKind.INDIRECT_TAIL),
        (20, ExitKind.INDIRECT_TAIL),
        (22, ExitKind.RETURN),
        (24, ExitKind.RETURN),
        (27, ExitKind.TAIL),
    ]
    inside = [(site.address - START) for site in find_exits(code, [(START + 0xF0, START + 0x100)])]
    assert inside == [8, 14, 20, 22, 24, 27]
    assert [site for site, _ in plan_exits(code)] == find_exits(code)


def test_a_return_is_probed_with_what_is_in_front_of_it() -> None:
    # mov eax, edi; pop rbx; pop rbp; ret, other code
    code = decode("89f8 5b 5d c3")
    plan = plan_exit(START + 4, code, {START + 5})
    assert summary(plan) == (Technique.JUMP_GUARDED, 0, 4, [2, 3, 4])
    assert plan.probe_index == 3 and plan.displaced[3] == Displaced(START + 4, b"\xc3")
    # A long instruction in front: the byte of the return is replaced as well.
    plan = plan_exit(START + 7, decode("488b0500000000 c3"), {START + 8})
    assert summary(plan) == (Technique.JUMP_GUARDED, 0, 2, [7])
    assert plan.patch(START + 0x100)[5:] == b"\x00\x00\xcc" and len(plan.original) == 8


def test_a_return_that_is_branched_to_is_not_probed_with_what_is_in_front_of_it() -> None:
    # je 9; mov rax, [rip]; ret
    plans = list(iter_exit_plans(START + 9, decode("7407 488b0500000000 c3"), {START + 10}))
    assert all(plan.patch_address == START + 9 for plan in plans)


def test_a_branch_into_a_long_instruction_keeps_a_return_from_being_probed_with_it() -> None:
    # je 8; movabs rax, ... (2 to 12); ret
    plans = list(iter_exit_plans(START + 12, decode("7406 48b81122334455667788 c3"), {START + 13}))
    assert all(plan.patch_address == START + 12 for plan in plans)
    # It does not reach as far as a jump over the instruction alone.
    assert plan_site(START + 2, decode("7406 48b81122334455667788 c3")).technique == Technique.JUMP


def test_branches_lead_elsewhere() -> None:
    # je 9 (long); jmp out; ret, other code
    code = decode("0f8405000000 e9f0000000 c3", following=b"\xff\xff\xff\x7f")
    plan = plan_exit(START + 11, code, {START + 12}, {Technique.BRANCHES, Technique.TRAP})
    assert summary(plan) == (Technique.BRANCHES, 11, 1, [11])
    assert plan.branches == (Displaced(START, bytes.fromhex("0f8405000000")),)
    assert plan.claimed == ((START + 11, START + 12), (START, START + 6))
    # A short one, and one who may come from elsewhere.
    assert plan_exit(START + 11, code, {START + 11}, {Technique.BRANCHES, Technique.TRAP}).technique == Technique.TRAP
    known = {START + 11: (Displaced(START + 0x100, bytes.fromhex("e906ffffff")),)}
    plan = plan_exit(START + 11, code, {START + 11}, {Technique.BRANCHES, Technique.TRAP}, branches=known)
    assert [branch.address for branch in plan.branches] == [START, START + 0x100]
    # Or who comes from in front of it.
    falls = decode("0f8401000000 90 c3")
    assert plan_exit(START + 7, falls, {START + 8}, {Technique.BRANCHES, Technique.TRAP}).technique == Technique.TRAP
    short = decode("7405 e9f0000000 c3")
    assert plan_exit(START + 7, short, {START + 8}, {Technique.BRANCHES, Technique.TRAP}).technique == Technique.TRAP


def test_no_run_is_copied_that_can_not_be() -> None:
    # je 12 (long); jmp out; nop; ret / xbegin
    wanted = {Technique.BRANCHES, Technique.TRAP}
    for run, technique in (("90", Technique.BRANCHES), ("c7f800000000", Technique.TRAP), ("90" * 16, Technique.TRAP)):
        code = decode(f"0f8405000000 e9f0000000 {run} c3")
        last = code.starts[code.n_instructions - 1]
        assert plan_exit(last, code, {code.end}, wanted).technique == technique, run
    code = decode("0f8405000000 e9f0000000 90 c3")
    for start, technique in (
        (START + 11, Technique.TRAP),
        (START + 2, Technique.TRAP),
        (START + 6, Technique.BRANCHES),
    ):
        forbidden = [Forbidden(start, start + 1, "is patched already")]
        assert plan_exit(START + 12, code, {code.end}, wanted, forbidden).technique == technique
