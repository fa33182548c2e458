"""All functions of libraries of the machine's own, planned together: entries and exits share patches."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from clew.binary.elf import open_elf
from clew.errors import UsageError
from clew.probing.planning import Planning, Site
from clew.probing.x86_64.exits import ExitKind, find_all_exits
from clew.probing.x86_64.image_code import ImageCode, read_image_code
from clew.probing.x86_64.plans import Technique

LIBRARIES = [Path(f"/usr/lib/x86_64-linux-gnu/{name}") for name in ("libz.so.1", "libc.so.6", "libstdc++.so.6")]
BASE = 0x7F00_0000_0000
MAX_TRAPS = 0.01
MAX_REFUSED = 0.0005


@pytest.fixture(scope="module", params=LIBRARIES, ids=lambda path: path.name)
def image(request: pytest.FixtureRequest) -> ImageCode:
    if not request.param.exists():
        pytest.skip(f"{request.param} is missing")
    with open_elf(request.param) as elf:
        return read_image_code(elf, BASE)


def add_all(
    planning: Planning, image: ImageCode, without: frozenset[Technique] = frozenset()
) -> tuple[list[Site], int]:
    """Plan where all functions begin, and where they are left; the sites, and how many were refused."""
    sites, n_refused = [], 0
    pieces = {piece.start for parts in image.parts.values() for piece in parts}
    for code in image.functions:
        if code.start in pieces:
            continue
        places = [(code, code.start, False, False)]
        for piece, one in find_all_exits(code, image.parts.get(code.start, ())):
            places.append((piece, one.address, True, one.kind == ExitKind.CONDITIONAL_TAIL))
        for piece, address, is_exit, is_taken in places:
            try:
                site = Site(address, piece, image, is_exit=is_exit, is_taken=is_taken)
                site.without = without
                planning.add(site)
            except UsageError:
                n_refused += 1
            else:
                sites.append(site)
    return sites, n_refused


def check(planning: Planning, sites: list[Site]) -> None:
    """Each site is in a group of its own instruction, and no two groups write the same byte."""
    made, gone = planning.changes()
    assert not gone
    assert {id(site) for group in made for site in group.sites} == {id(site) for site in sites}
    for site in sites:
        assert site.group is not None
        assert site.group.plan.displaced[site.group.index_of(site)].address == site.at
    ranges = [(group.plan.patch_address, group.plan.patch_end) for group in made]
    ranges += [(one.address, one.end) for group in made for one in group.plan.branches]
    for (_, end), (start, _) in pairwise(sorted(ranges)):
        assert end <= start


def test_functions_are_planned_together(image: ImageCode) -> None:
    planning = Planning()
    sites, n_refused = add_all(planning, image)
    check(planning, sites)
    traps = [site for site in sites if site.group is not None and site.group.plan.technique == Technique.TRAP]
    assert len(traps) <= max(5, MAX_TRAPS * len(sites))
    assert n_refused <= max(1, MAX_REFUSED * len(sites))


@pytest.mark.parametrize("order", ["forward", "backward", "anyhow"])
def test_all_instructions_of_functions_are_planned_together(image: ImageCode, order: str) -> None:
    """Padding between them is probed, too, where a function's size counts it."""
    planning = Planning()
    sites: list[Site] = []
    n_refused = 0
    chosen = random.Random(order)
    for code in chosen.sample(image.functions, min(len(image.functions), 100)):
        places = code.starts[: code.n_instructions]
        if order != "forward":
            places.reverse()
        if order == "anyhow":
            chosen.shuffle(places)
        for address in places:
            try:
                site = Site(address, code, image)
                planning.add(site)
            except UsageError:
                n_refused += 1
            else:
                sites.append(site)
    check(planning, sites)
    assert n_refused <= MAX_REFUSED * len(sites)


@pytest.mark.long
def test_techniques_are_left_out(image: ImageCode) -> None:
    """Where all may trap all can; where none may, as many are refused as trap otherwise, and some for those beside."""
    planning = Planning()
    usual, n_refused = add_all(planning, image)
    n_traps = sum(site.group is not None and site.group.plan.technique == Technique.TRAP for site in usual)
    for without in (frozenset(Technique) - {Technique.TRAP}, frozenset((Technique.TRAP,))):
        planning = Planning()
        sites, n = add_all(planning, image, without)
        check(planning, sites)
        techniques = {site.group.plan.technique for site in sites if site.group is not None}
        assert not techniques & without
        assert n <= n_refused if Technique.TRAP in techniques else n_refused <= n <= n_refused + 2 * n_traps


@pytest.mark.long
def test_what_traps_makes_room_for_itself(image: ImageCode) -> None:
    """Sites that may be anything give way to those that have to trap, and the other way round."""
    planning = Planning()
    usual, _ = add_all(planning, image)
    traps, _ = add_all(planning, image, frozenset(Technique) - {Technique.TRAP})
    check(planning, [*usual, *traps])
    assert all(site.group is not None and site.group.plan.technique == Technique.TRAP for site in traps)


def test_some_are_taken_out_and_put_back(image: ImageCode) -> None:
    """In another order, each may be in the way of others."""
    planning = Planning()
    sites, _ = add_all(planning, image)
    for seed in range(3):
        chosen = random.Random(seed).sample(sites, len(sites) // 3)
        planning.remove(chosen)
        assert all(site.group is None for site in chosen)
        for site in chosen:
            planning.add(site)
        check(planning, sites)


def test_what_is_in_place_is_replaced(image: ImageCode) -> None:
    """A site that joins a patch that is there already: the old one is to go, and the new one has the sites of both."""
    planning = Planning()
    sites, _ = add_all(planning, image)
    shared = next(site.group for site in sites if site.group is not None and len(site.group.sites) > 1)
    first, *others = shared.sites
    planning.remove(others)
    planning.confirm()
    planning.add(others[0])
    made, gone = planning.changes()
    assert [group.sites for group in gone] == [(first,)]
    assert [set(map(id, group.sites)) for group in made] == [{id(first), id(others[0])}]
