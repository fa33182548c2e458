"""A page that is open on a recording of tests/programs/attach/controlled.c, and its panel "Program".

Runs on the machine that tests.
"""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Locator, expect

from clew.binary.architectures.x86_64 import X86_64
from clew.binary.disassembly import DisassembledInstruction, disassemble
from tests.e2e import runs
from tests.e2e.live_recording import LiveRecording
from tests.web.recorded_page import RecordedPage

__all__ = ["ProgramPage", "find_target"]


class ProgramPage(RecordedPage):
    """A page that is open on a recording of a program with two threads that compute and one that reads lines."""

    @property
    def panel(self) -> Locator:
        return self.page.get_by_role("group", name="Program", exact=True)

    @property
    def stopped(self) -> Locator:
        """The threads that are stopped."""
        return self.page.get_by_role("group", name="Stopped threads").get_by_role("radio")

    def wait_for(self, state: str) -> None:
        """Until the panel says that the program is in this state."""
        self.viewer.wait_for_data("[data-program]", "program", [state])

    def press(self, name: str) -> None:
        """Press a button of the panel."""
        self.panel.get_by_role("button", name=name, exact=True).click()

    def register(self, name: str) -> int:
        """What the table of registers says."""
        return int(self.panel.locator(f"[data-register={name}]").inner_text(), 16)

    def read(self, address: int, size_bytes: int) -> bytes:
        """Bytes of the program's memory."""
        with open(f"/proc/{find_target(self.recording)}/mem", "rb", buffering=0) as memory:
            return os.pread(memory.fileno(), size_bytes, address)

    def instruction_at(self, address: int) -> DisassembledInstruction:
        """By an independent decoder."""
        return disassemble(self.read(address, 15), address, X86_64)[0]

    def call(self, n: int) -> None:
        """Have the program call `counted` so often, and wait until it has."""
        self.recording.say(str(n))
        assert self.recording.hear() == f"did {n}"

    def add_breakpoint(self, place: str) -> None:
        """By the text field."""
        self.panel.get_by_role("textbox", name="Break at").fill(place)
        self.press("Break")

    def press_break_here(self) -> None:
        """Break at what is selected."""
        self.panel.get_by_role("button", name="Break here").click()

    def choose_code(self, how: str, what: str) -> None:
        """Include, exclude or record only some code."""
        self.panel.get_by_role("combobox", name="Include, exclude").select_option(how)
        field = self.panel.get_by_role("textbox", name="An image")
        field.fill(what)
        self.press("Apply")
        # What was obeyed is not there any more.
        expect(field).to_have_value("")

    def end(self) -> None:
        """Let the program come to its end; it did everything right."""
        self.recording.close_input()
        assert self.recording.hear() == "good"
        expect(self.page.locator(".live-panel")).to_have_count(0)

    def verify(self, status: int = 0) -> None:
        """The recording has ended with this status; what was recorded is well-formed, and nothing was lost."""
        # The page asks nobody who is gone.
        self.viewer.wait_for_counts()
        self.viewer.wait_for_quiet()
        assert self.recording.stop() == status
        verified = runs.run(runs.clew_command("verify", self.recording.trace))
        assert verified.status == 0, verified.stdout
        runs.read(self.recording.trace)

    def entries_of(self, name: str) -> Locator:
        """How often a function was entered, by the details; it is selected."""
        self.page.get_by_role("searchbox", name="Filter functions").fill(name)
        expect(self.viewer.rows).to_have_count(1)
        self.viewer.rows.first.click()
        return self.viewer.fact("entries")


def find_target(recording: LiveRecording) -> int:
    """The program's process, of those that clew started."""
    text = Path(f"/proc/{recording.process.pid}/task/{recording.process.pid}/children").read_text()
    children = [int(word) for word in text.split()]
    return next(one for one in children if Path(f"/proc/{one}/comm").read_text() == "controlled\n")
