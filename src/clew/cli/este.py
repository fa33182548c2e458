"""What `clew record --config` does: Este's configuration says what is told of the program, and where that goes.

Runs in the controller. Light: what writes the files is imported after the target has ended.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from clew.cli.console import say
from clew.errors import ClewError, OutputError, UsageError
from clew.export.este.config import read_config

if TYPE_CHECKING:
    from clew.export.este.config import EsteConfig

__all__ = ["prepare_config", "write_este_files"]


def prepare_config(path: Path, context: click.Context) -> EsteConfig:
    """Read a configuration before anything is recorded. Raises UsageError, also for options of `clew record` that
    contradict it, and OutputError if its directory can't be written to."""
    config = read_config(path)
    if context.get_parameter_source("mode") != ParameterSource.DEFAULT:
        mode = context.params["mode"]
        if mode != "full":
            raise UsageError(f"--config needs the order of blocks: leave out --mode {mode}, or say --mode full")
    if context.params["include"] or context.params["exclude"]:
        raise UsageError(f"{path}: its binary-whitelist says what is told of; leave out --include and --exclude")
    existing = next(
        folder for folder in (config.output.absolute(), *config.output.absolute().parents) if folder.exists()
    )
    if not existing.is_dir():
        raise OutputError(config.output, f"{existing} is no directory; name another as output-dir in {path}")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise OutputError(config.output, f"{existing} is not writable; name another directory as output-dir in {path}")
    return config


def write_este_files(config: EsteConfig, trace_path: Path, *, is_quiet: bool) -> None:
    """Write the files of a recording that has ended; what fails is told, with what is left to do."""
    from clew.cli.export import write_folder
    from clew.export.este.exporter import EsteExporter
    from clew.store.trace import Trace

    try:
        exporter = EsteExporter(config.scope, config.title)
        write_folder(exporter, Trace(trace_path), config.output, may_add=True, is_quiet=is_quiet)
    except ClewError as error:
        # The program has ended, and its status counts.
        say(f"{error.message}; `clew export {trace_path} --to este` writes Este's files of the trace")
