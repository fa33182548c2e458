"""Events of probes that were written as tables, looked at alone or beside a trace."""
