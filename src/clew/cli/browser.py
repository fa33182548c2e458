"""Opens a browser at an address that clew printed.

Runs in the controller.
"""

from __future__ import annotations

import os

from clew.cli.console import say

__all__ = ["open_browser"]


def open_browser(url: str) -> None:
    """Open the address in a browser, where there is one with a screen to show it on."""
    import webbrowser

    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER")):
        return
    try:
        webbrowser.open(url)
    except webbrowser.Error as error:
        say(f"no browser could be opened: {error}")
