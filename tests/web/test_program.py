"""The panel "Program" of the live view: it holds, steps, leaves and ends the program, and chooses what is recorded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from clew.analysis.trace import Trace
from tests.e2e.attaching import has_shared_memory, wait_for
from tests.programs.build import SOURCES
from tests.web.accessibility import find_serious, load_axe
from tests.web.program_page import ProgramPage, find_target
from tests.web.recorded_page import record, watch

Open = Callable[..., ProgramPage]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tests/programs/attach/controlled.c."""
    path = tmp_path_factory.mktemp("program") / "controlled"
    subprocess.run(["gcc", "-O1", "-pthread", "-o", path, SOURCES / "attach/controlled.c"], check=True)
    return path


@pytest.fixture
def open_program(browser: Browser, program: Path, tmp_path: Path) -> Iterator[Open]:
    """Opens a page on a recording of it."""
    with ExitStack() as recordings, watch(browser, ProgramPage) as make:

        def open_page(*options: str) -> ProgramPage:
            # What pulses takes the processor from what is tested.
            folder = Path(tempfile.mkdtemp(dir=tmp_path))
            live = make(recordings.enter_context(record(program, folder, *options)), reduced_motion="reduce")
            if "--pause" in options:
                live.page.goto(live.recording.url)
                return live
            assert live.recording.hear() == "ready"
            # Its threads compute all the time: what is tested has the processor first.
            for task in os.listdir(f"/proc/{find_target(live.recording)}/task"):
                os.setpriority(os.PRIO_PROCESS, int(task), 19)
            live.page.goto(live.recording.url)
            live.viewer.rows.first.wait_for()
            live.wait_for("running")
            return live

        yield open_page


def test_pausing_the_program_holds_it(open_program: Open) -> None:
    live = open_program()
    page = live.page
    live.press("Pause program")
    live.wait_for("held")
    expect(live.stopped).to_have_count(2)
    expect(live.panel.get_by_role("list", name="Other threads")).to_contain_text("waits in read")
    rates = page.locator(".live-threads .count")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.live-threads .count')].every((one) => one.textContent.startsWith('0/s'))"
    )
    executed = rates.all_inner_texts()
    live.recording.say("3")
    # The third comes back from its call, and stops, too.
    expect(live.stopped).to_have_count(3)
    page.locator("canvas[data-layout-state]").focus()
    assert [text.partition("s, ")[2] for text in rates.all_inner_texts()[1:]] == [
        text.partition("s, ")[2] for text in executed[1:]
    ]
    expect(live.page.get_by_role("button", name="Pause picture")).to_be_visible()
    page.keyboard.press("F8")
    live.wait_for("running")
    assert live.recording.hear() == "did 3"
    expect(live.stopped).to_have_count(0)
    expect(rates.nth(1)).not_to_have_text(executed[1])
    expect(live.entries_of("counted")).to_have_text("3")
    live.end()
    live.verify()


def test_a_breakpoint_stops_and_steps_follow_the_instructions(open_program: Open) -> None:
    live = open_program()
    page = live.page
    live.call(1)
    expect(live.entries_of("counted")).to_have_text("1")
    live.press_break_here()
    breakpoints = live.panel.get_by_role("list", name="Breakpoints").get_by_role("listitem")
    expect(breakpoints).to_have_text([re.compile("^controlled!counted 0x")])
    live.entries_of("spin")
    live.recording.say("2")
    live.wait_for("held")
    chosen = live.page.get_by_role("radio", checked=True)
    expect(live.panel.locator("label").filter(has=chosen)).to_contain_text("breakpoint at controlled!counted")
    # It is selected where it stands.
    details = page.get_by_role("region", name="Details")
    expect(details.get_by_role("heading").first).to_contain_text("counted")
    expect(details).to_contain_text("Code comes with the finished trace.")
    page.get_by_role("searchbox", name="Filter functions").fill("")
    page.locator("canvas[data-layout-state]").focus()
    assert live.register("rdi") == 0
    rip = live.panel.locator("[data-register=rip]")
    pc = live.register("rip")
    # The function is one instruction and a return.
    behind = pc + len(live.instruction_at(pc).code)
    assert live.instruction_at(behind).text == "ret"
    page.keyboard.press("F9")
    expect(rip).to_have_text(hex(behind))
    expect(live.panel.locator("label").filter(has=chosen)).to_contain_text("stepped at controlled!counted+0x")
    returns_to = int.from_bytes(live.read(live.register("rsp"), 8), "little")
    page.keyboard.press("F9")
    expect(rip).to_have_text(hex(returns_to))
    expect(page.get_by_role("region", name="Details").get_by_role("heading").first).to_contain_text("outer")
    live.panel.get_by_role("button", name="Delete the breakpoint at controlled!counted").click()
    expect(breakpoints).to_have_count(0)
    live.add_breakpoint("outer+0x0")
    expect(breakpoints).to_have_text([re.compile("^controlled!outer 0x")])
    live.press("Continue program")
    # The second call of the two.
    expect(live.panel.locator("label").filter(has=chosen)).to_contain_text("breakpoint at controlled!outer")
    assert live.register("rdi") == 1
    pc = live.register("rip")
    is_over_call = False
    while not is_over_call:
        instruction = live.instruction_at(pc)
        is_over_call = instruction.text.startswith("call")
        pc += len(instruction.code)
        live.press("Step over")
        expect(rip).to_have_text(hex(pc))
    live.press("Continue program")
    assert live.recording.hear() == "did 2"
    live.end()
    expect(live.entries_of("outer")).to_have_text("3")
    live.verify()


def test_what_is_recorded_is_chosen_and_the_program_ended(open_program: Open) -> None:
    live = open_program()
    live.viewer.expected.append("status of 422")
    live.call(10)
    before = {}
    for name in ("counted", "outer"):
        expect(live.entries_of(name)).to_have_text("10")
        before[name] = live.viewer.number("instructions")
    what = live.panel.get_by_role("textbox", name="An image")
    what.fill("controlled!counted")
    live.press("Apply")
    expect(live.panel).to_contain_text("It holds 1 piece of code that is loaded")
    expect(live.panel).to_contain_text("Excluded, the last one last: controlled!counted")
    expect(what).to_have_value("")
    live.call(200)
    expect(live.entries_of("outer")).to_have_text("210")
    assert live.viewer.number("instructions") == 21 * before["outer"]
    # Calls are counted where they are made; what is called is not.
    expect(live.entries_of("counted")).to_have_text("210")
    assert live.viewer.number("instructions") == before["counted"]
    live.choose_code("include", "controlled!counted")
    live.call(5)
    live.choose_code("only", "libc.so.6")
    live.call(400)
    live.choose_code("include", "controlled")
    live.call(5)
    for name, n_calls in (("outer", 10 + 200 + 5 + 5), ("counted", 10 + 5 + 5)):
        live.entries_of(name)
        executed = n_calls * before[name] // 10
        expect(live.viewer.fact("instructions")).to_have_text(re.compile(rf"^{executed:,}\b"))
    # What is refused names the thing, and what was written stays to be mended.
    live.add_breakpoint("no_such_function")
    expect(live.panel.get_by_role("alert")).to_contain_text("no_such_function: nothing that process")
    expect(live.panel.get_by_role("textbox", name="Break at")).to_have_value("no_such_function")
    expect(live.panel).to_contain_text("Mode counts has no order")
    live.wait_for("running")
    _kill(live)
    expect(live.entries_of("outer")).to_have_text("220")
    live.verify(128 + signal.SIGKILL)


def _kill(live: ProgramPage) -> None:
    """End the program, after a question that is not answered at first."""
    target = find_target(live.recording)
    live.press("Kill …")
    dialog = live.page.get_by_role("dialog", name="Kill the program?")
    expect(dialog).to_contain_text(f"Process {target} ")
    live.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    live.wait_for("running")
    live.press("Kill …")
    dialog.get_by_role("button", name="Kill", exact=True).click()
    expect(live.page.locator(".live-panel")).to_have_count(0)
    assert not Path(f"/proc/{target}").exists()


def test_a_program_is_left_after_a_question(open_program: Open) -> None:
    live = open_program()
    live.call(5)
    live.press("Pause program")
    live.wait_for("held")
    live.press("Detach …")
    dialog = live.page.get_by_role("dialog", name="Detach from the program?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    live.wait_for("held")
    target = find_target(live.recording)
    assert has_shared_memory(target)
    live.press("Detach …")
    dialog.get_by_role("button", name="Detach", exact=True).click()
    # Nothing holds it any more, and what it does is not counted.
    wait_for(lambda: not has_shared_memory(target))
    live.call(6)
    live.recording.close_input()
    assert live.recording.hear() == "good"
    expect(live.page.locator(".live-panel")).to_have_count(0)
    expect(live.entries_of("counted")).to_have_text("5")
    # clew did not wait for it.
    live.verify(128 + signal.SIGTERM)


@pytest.mark.long
@pytest.mark.glance
def test_a_budget_is_set_before_the_first_instruction(open_program: Open) -> None:
    live = open_program("--mode", "auto", "--pause", "60")
    live.wait_for("waiting")
    budget = live.panel.get_by_role("textbox", name="Order to record")
    told = live.panel.locator("[data-recorded]")
    for text, expected in (("2.5", "2.5 MB/s of order"), ("all", "all of the order"), ("0", "only counts")):
        budget.fill(text)
        live.press("Set budget")
        expect(told).to_contain_text(expected)
    budget.fill("much")
    live.press("Set budget")
    expect(live.panel.get_by_role("alert")).to_contain_text('budget "much"')
    live.press("Pause program")
    live.wait_for("held")
    expect(live.panel.locator("label").first).to_contain_text("paused at ld-linux")
    expect(live.page.locator(".live-status")).to_contain_text("The program is stopped")
    expect(live.page.locator(".live-status")).to_contain_text(re.compile(r"\d s since the recording began"))
    live.add_breakpoint("outer")
    live.panel.get_by_role("button", name="Delete the breakpoint at controlled!outer").wait_for()
    _check_accessible(live)
    # A button that can do nothing at the moment keeps the focus.
    button = live.panel.get_by_role("button", name="Continue program")
    button.focus()
    live.page.keyboard.press("Enter")
    assert live.recording.hear() == "ready"
    live.wait_for("running")
    expect(button).to_be_focused()
    expect(button).to_be_disabled()


def test_the_mode_is_switched_while_the_program_runs(open_program: Open) -> None:
    live = open_program()
    modes = live.panel.get_by_role("group", name="Mode of the recording")
    told = live.panel.locator("[data-recorded]")
    budget = live.panel.get_by_role("textbox", name="Order to record")
    what = live.panel.get_by_role("textbox", name="An image")

    def expect_mode(name: str, words: str) -> None:
        expect(told).to_have_text(words)
        expect(modes.get_by_role("button", pressed=True)).to_have_text([name])

    expect_mode("counts", "Mode counts")
    expect(budget).to_have_count(0)
    live.call(10)
    # By keys alone: the third of the buttons, which keeps the focus.
    modes.get_by_role("button", name="counts").focus()
    for key in ("Tab", "Tab", "Enter"):
        live.page.keyboard.press(key)
    expect_mode("full", "Mode full: all of the order")
    expect(modes.get_by_role("button", name="full")).to_be_focused()
    expect(budget).to_have_value("all")
    live.call(5)
    # The order leads through what is left out; calls of it are counted where they are made.
    what.fill("controlled!counted")
    live.press("Apply")
    expect(live.panel).to_contain_text("Excluded, the last one last: controlled!counted")
    live.call(4)
    what.fill("controlled!counted")
    live.panel.get_by_role("combobox", name="Include, exclude").select_option("include")
    live.press("Apply")
    expect(what).to_have_value("")
    _check_accessible(live)
    budget.fill("50")
    live.press("Set budget")
    expect_mode("auto", "Mode auto: 50 MB/s of order")
    expect(budget).to_have_value("50")
    modes.get_by_role("button", name="full").click()
    expect_mode("full", "Mode full: all of the order")
    expect(budget).to_have_value("all")
    live.press("counts")
    expect_mode("counts", "Mode counts")
    expect(budget).to_have_count(0)
    expect(what).to_be_enabled()
    live.call(7)
    expect(live.entries_of("counted")).to_have_text("26")
    live.end()
    expect(live.entries_of("counted")).to_have_text("26")
    live.verify()
    trace = Trace(live.recording.trace)
    assert trace.mode == "full"
    # The order has the calls that were made meanwhile, and no others.
    rows = trace.blocks.select(["block_id", "symbol", "symbol_offset"]).to_pylist()
    [outer] = [row["block_id"] for row in rows if (row["symbol"], row["symbol_offset"]) == ("outer", 0)]
    assert sum(piece.block_ids.tolist().count(outer) for piece in trace.path().iter_pieces()) == 9
    # What can't be chosen says why.
    live = open_program("--mode", "region", "--pause", "60")
    live.wait_for("waiting")
    for button in live.panel.get_by_role("group", name="Mode of the recording").get_by_role("button").all():
        expect(button).to_have_attribute("title", re.compile("^Mode region stays to the end"))
        expect(button).to_be_disabled()
    expect(live.panel.get_by_role("textbox", name="An image")).to_be_disabled()
    expect(live.panel.locator("[data-recorded]")).to_have_text("Mode region")
    # One that waits at its start would wait on without clew.
    live.press("Continue program")
    assert live.recording.hear() == "ready"


def _check_accessible(live: ProgramPage) -> None:
    """In both themes."""
    load_axe(live.page)
    assert find_serious(live.page, None) == []
    live.page.evaluate("() => document.activeElement.blur()")
    live.page.keyboard.press("t")
    expect(live.page.locator("html")).to_have_attribute("data-theme", "light")
    assert find_serious(live.page, None) == []
