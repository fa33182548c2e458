"""What the tests of the view of calls read of it: all rows of its table, however few of them are made at a time."""

from __future__ import annotations

from playwright.sync_api import Locator, Page

__all__ = ["read_rows", "read_rows_of_all", "show_row"]

_READ = """async () => {
  const table = document.querySelector('[role=grid][aria-label=Calls]');
  const wanted = Number(table.getAttribute('aria-rowcount')) - 1;
  const found = new Map();
  const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const deadline = performance.now() + 40000;
  for (let top = 0; found.size < wanted && performance.now() < deadline; ) {
    table.scrollTop = top;
    await frames();
    for (const row of table.querySelectorAll('[data-call]')) {
      const cells = [...row.querySelectorAll('[role=gridcell]')].map((cell) => cell.textContent);
      const told = [row.dataset.process, row.dataset.call, row.dataset.block].map(Number).concat(cells);
      found.set(Number(row.getAttribute('aria-rowindex')), told);
    }
    // Rows that are still to come are waited for.
    const isHere = ![...table.querySelectorAll('[role=row]:not(.head)')].some((row) => row.dataset.call === undefined);
    top = isHere ? (top + 100 > table.scrollHeight ? 0 : top + 100) : top;
  }
  return [...found].sort(([a], [b]) => a - b).map(([, row]) => row);
}"""


def read_rows(page: Page) -> dict[int, tuple[int, list[str]]]:
    """By index each call that the table has, in its order: the block and the texts of its cells. Each is there once."""
    rows: list[list[int | str]] = page.evaluate(_READ)
    found = {int(call): (int(block), [str(cell) for cell in cells]) for _, call, block, *cells in rows}
    assert len(found) == len(rows)
    return found


def read_rows_of_all(page: Page) -> list[tuple[int, int, list[str]]]:
    """Each row of the table of all processes' calls, in its order: the process, the call and the texts of its cells."""
    rows: list[list[int | str]] = page.evaluate(_READ)
    return [(int(process), int(call), [str(cell) for cell in cells]) for process, call, _, *cells in rows]


def show_row(page: Page, number: int) -> Locator:
    """Have the row of a call in sight, of a table that is sorted by time and has all of them."""
    page.get_by_role("grid", name="Calls").wait_for()
    place = "(number) => document.querySelector('[role=grid][aria-label=Calls]').scrollTop = (number - 2) * 22"
    page.evaluate(place, number)
    return page.locator(f"[data-call='{number}']")
