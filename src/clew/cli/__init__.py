"""The command line: one file per subcommand. Only here is anything printed, and only here does clew exit."""
