"""The list of the test programs says what there is."""

from __future__ import annotations

from tests.programs.build import catalogue
from tests.programs.listing import README, SCENARIOS, readme


def test_readme_is_up_to_date() -> None:
    assert README.read_text() == readme(), "python -m tests.programs.listing writes it"


def test_every_scenario_has_programs() -> None:
    names = {program.name for program in catalogue()}
    assert len(SCENARIOS) == 50
    for scenario, programs in SCENARIOS.items():
        assert programs.split(), scenario
        assert set(programs.split()) <= names, scenario
