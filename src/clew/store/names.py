"""What files and folders of a trace are called. Imports nothing, as a recording begins with it."""

from __future__ import annotations

from typing import Final

__all__ = ["JOURNAL_NAME", "MANIFEST_NAME", "PATHS_FOLDER", "RECORDED_NAME"]

PATHS_FOLDER: Final = "paths"
"""Where the files of ordered paths are, in a trace."""
MANIFEST_NAME: Final = "manifest.json"
JOURNAL_NAME: Final = "recording.journal"
RECORDED_NAME: Final = "recorded.clew"
"""The trace beside events of probes, of what was followed from one of them on."""
"""The file in a trace's directory that says that it is being recorded."""
