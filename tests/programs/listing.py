"""The list of the test programs, by group, and of the scenarios that break tracers: what README.md here says.

Runs on the machine that tests: `python -m tests.programs.listing` writes README.md, and a test compares it.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from tests.programs.build import SOURCES, Program, catalogue

__all__ = ["SCENARIOS", "readme"]

README = SOURCES / "README.md"

_GROUPS = {
    "Signals": "signal_* stop_and_continue default_actions",
    "Faults and ends": "fault_* fatal_* no_address exit_group_running exception_terminate",
    "Code that is made, changes and goes": (
        "code_* library_* unknown_instructions versions_of_* many_blocks large_code"
    ),
    "Processes": (
        "fork_* vfork_* child_* spawn* clone* exec_* daemon_* orphan wait_* pipeline parent_death trace_* *rights "
        "namespaces descriptors_* root_* limit* seccomp_*"
    ),
    "Threads": "thread*",
    "The processor's state": (
        "*_segment segment_* mode_* vector_state x87_* mxcsr_* state_saved avx512_* amx_* protection_* cpuid_* "
        "transaction time_stamp_off rseq_* vdso vsyscall*"
    ),
    "Whole programs, and what they see of themselves": (
        "bare_exit start_return static_pie musl_* rust_* go_* environment proc_status stdin_copy break_moved"
    ),
    "Control flow": "*",
}
"""Groups, in the order of the list, and the patterns of their programs' names. The first that matches has it."""

SCENARIOS = {
    "every sigaction flag": "signal_flags signal_return signal_children signal_restorer signal_autodisarm",
    "nested handlers": "signal_return signal_mask signal_queue",
    "sigaltstack": "signal_stack signal_autodisarm signal_altstack_jump",
    "bad or tiny signal stacks": "signal_stack_small fatal_small_stack",
    "handlers that read and write the context, with ymm and zmm": (
        "signal_context signal_context_registers signal_context_vector.avx512 signal_vector_storm.avx512"
    ),
    "pc and registers at faults": (
        "fault_memory fault_arithmetic fault_instructions fault_alignment signal_faults signal_fixup"
    ),
    "a signal in the middle of changed code": (
        "signal_storm signal_storm_faults signal_one_block_loop signal_short_blocks signal_indirect_calls"
    ),
    "a timer against system calls; a signal just before one": "signal_storm_syscalls signal_races signal_restart",
    "sigsuspend": "signal_wait_calls signal_mask",
    "the masks of ppoll, pselect and epoll_pwait": "signal_wait_calls",
    "signalfd, sigwaitinfo, sigtimedwait": "signal_descriptors",
    "restarted calls and EINTR": "signal_restart signal_restart_block stop_and_continue",
    "alarm, interval timers and timer_create": "signal_timers signal_timer",
    "frames made by hand": "signal_frame_made signal_frame_cut signal_bad_state signal_selectors",
    "corrupt extended state in a frame": "signal_frame_corrupt signal_bad_state",
    "sigprocmask": "signal_process_mask signal_mask",
    "longjmp and other ways out of handlers": (
        "signal_long_jump signal_jump_anywhere signal_altstack_jump signal_swap_context signal_throw"
    ),
    "C++ exceptions through other code": "callback_throw exceptions exceptions_deep rust_panics",
    "setcontext and coroutines": "context_make coroutines signal_swap_context",
    "tricks with return addresses": (
        "call_pop push_ret changed_return start_return far_return far_transfers return_read_only"
    ),
    "loop and jrcxz": "loop_instructions",
    "flags across indirect branches": "flags_live",
    "stack overflow": "signal_stack signal_altstack_jump fatal_stack",
    "a program that steps through itself": "single_step_itself single_step_around single_step_fast_timers",
    "fork": "fork_wait pipeline daemon_pipe orphan",
    "fork with threads": "fork_threads",
    "vfork, also inside vfork": "vfork_nested spawn spawn_attributes",
    "exec by the executed, and failing": "exec_chain exec_script exec_errors exec_from_thread",
    "clone and clone3": "clone_vfork_copy clone_raw clone_flags clone3_calls clone3_sizes clone_handlers",
    "thread groups": "exec_from_thread exit_group_running thread_exits_process threads_detached",
    "many short threads": "thread_churn threads_thousand",
    "attached to while threads are created": "thread_churn threads_thousand",
    "attached to under signals, and with signals blocked": "signal_timer signal_storm signal_mask",
    "attached to when a thread has ended": "threads_detached",
    "attached to: the state is kept": "registers_live flags_live vector_state vector_state.avx512",
    "code that changes itself": "code_rewritten code_rewritten_thread code_flags_rewritten code_patched_call",
    "mprotect back and forth, memory mapped anew": "code_toggled code_moved code_made code_mapped_twice library_reuse",
    "memory without code, or not executable": "code_faults code_unreadable no_address",
    "invalid instructions": "fault_instructions fatal_ud2 unknown_instructions",
    "150,000 blocks": "many_blocks",
    "Go: stacks that move, preemption by signals": "go_program",
    "restartable sequences": "rseq_getcpu",
    "AVX-512 used late": "avx512_late",
    "AMX and protection keys": "amx_tiles protection_keys",
    "the x87's last instruction; MXCSR": "x87_pointers mxcsr_kept",
    "FS and GS base, selectors, 32-bit code": "fs_segment gs_segment segment_selectors signal_selectors mode_32bit",
    "vDSO and vsyscall": "vdso vsyscall vsyscall_pointer",
    "a transaction that aborts": "transaction",
    "without libc, static": "bare_exit static_pie.static musl_program.static",
    "brk and mremap": "break_moved code_moved",
}
"""Fifty scenarios that break tracers, and the programs that each is in."""


def _group_of(program: Program) -> str:
    for group, patterns in _GROUPS.items():
        if any(fnmatch(program.source.stem, pattern) for pattern in patterns.split()):
            return group
    raise KeyError(program.name)


def readme() -> str:
    """The text of README.md."""
    lines = [
        "# Test programs",
        "",
        "One small program per behaviour. `tests/e2e/test_transparency.py` runs each natively and recorded, and",
        "compares what it prints; the heads of the sources say how each is built and compared (`build.py`).",
        "This file is written by `python -m tests.programs.listing`.",
    ]
    sources: dict[str, list[Program]] = {}
    for program in catalogue():
        sources.setdefault(program.source.stem, []).append(program)
    for group in _GROUPS:
        lines += ["", f"## {group}"]
        for name, builds in sorted(sources.items()):
            if _group_of(builds[0]) != group:
                continue
            others = [program.name.removeprefix(f"{name}.") for program in builds if program.name != name]
            also = f" (also: {', '.join(others)})" if others else ""
            needs = f" Needs {', '.join(sorted(builds[0].needs))}." if builds[0].needs else ""
            differs = f" **Differs:** {builds[0].differs}." if builds[0].differs else ""
            lines.append(f"- `{name}`{also}: {builds[0].what}.{needs}{differs}")
    lines += ["", "## Scenarios that break tracers", "| scenario | programs |", "| --- | --- |"]
    lines += [f"| {what} | {', '.join(f'`{name}`' for name in names.split())} |" for what, names in SCENARIOS.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(README).write_text(readme())
