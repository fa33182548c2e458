"""`clew verify`: prove a trace well-formed.

Runs in the controller. Exit status 0 for a good trace, 1 with what does not hold for any other.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

__all__ = ["command"]


@click.command(name="verify")
@click.option("--json", "as_json", is_flag=True, help="Print findings as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing if all is well.")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
def command(trace_path: Path, as_json: bool, quiet: bool) -> int:
    """Prove TRACE well-formed: flow is conserved, edges end where blocks begin, totals agree."""
    from clew.analysis.invariants.check import check_invariants, list_invariants
    from clew.cli.console import escape_control
    from clew.store.trace import Trace

    trace = Trace(trace_path)
    findings = check_invariants(trace)
    if as_json:
        rows = [
            {"invariant": finding.invariant, "places": finding.n_places, "examples": finding.examples}
            for finding in findings
        ]
        losses = {name: n for name, n in trace.manifest.losses.items() if n}
        told = {"well_formed": not findings, "findings": rows, "losses": losses, "releases": trace.manifest.releases}
        click.echo(json.dumps(told, indent=1))
    elif findings:
        from clew.cli.tables import format_counted

        for finding in findings:
            click.echo(f"does not hold: {finding.invariant} ({format_counted(finding.n_places, 'places')})")
            for example in finding.examples:
                click.echo(f"  {escape_control(example)}")
        if any(trace.manifest.losses.values()):
            click.echo("records were lost, so counts may not balance; see `clew info`")
    elif not quiet:
        lost = ""
        if any(trace.manifest.losses.values()):
            from clew.cli.summary import losses_text

            lost = f"; {losses_text(trace)}"
        click.echo(f"{escape_control(str(trace_path))}: well-formed; {len(list_invariants())} invariants hold{lost}")
    return 1 if findings else 0
