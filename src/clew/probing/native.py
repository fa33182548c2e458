"""What of planning depends on the processor, for the one that clew follows programs on: everybody else asks here.

Pure.
"""

from __future__ import annotations

from clew.probing.x86_64.exits import ExitKind, find_all_exits, iter_exit_plans_at
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.image_code import ImageCode, read_image_code
from clew.probing.x86_64.jump_bytes import JUMP_SIZE, TRAPS, JumpBytes
from clew.probing.x86_64.made_code import read_made_code
from clew.probing.x86_64.measured_program import MEASURED
from clew.probing.x86_64.moved_code import move_image
from clew.probing.x86_64.plans import TRAP_BYTE, Displaced, SitePlan, Technique
from clew.probing.x86_64.relocation import Inserted, Origin, Relocated, relocate
from clew.probing.x86_64.sites import ALL_TECHNIQUES, check_probed, find_probed, iter_plans_at, plan_site
from clew.probing.x86_64.stack_checks import find_body
from clew.probing.x86_64.trampolines import find_far_reach, find_plan_reach
from clew.probing.x86_64.windows import Forbidden, Forbidding, Surroundings, grow_window, plan_jump, run_of

__all__ = [
    "ALL_TECHNIQUES",
    "JUMP_SIZE",
    "MEASURED",
    "TRAPS",
    "TRAP_BYTE",
    "Displaced",
    "ExitKind",
    "Forbidden",
    "Forbidding",
    "FunctionCode",
    "ImageCode",
    "Inserted",
    "JumpBytes",
    "Origin",
    "Relocated",
    "SitePlan",
    "Surroundings",
    "Technique",
    "check_probed",
    "find_all_exits",
    "find_body",
    "find_far_reach",
    "find_plan_reach",
    "find_probed",
    "grow_window",
    "iter_exit_plans_at",
    "iter_plans_at",
    "move_image",
    "plan_jump",
    "plan_site",
    "read_image_code",
    "read_made_code",
    "relocate",
    "run_of",
]
