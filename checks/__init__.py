"""Checks of this repository that no ready-made tool does. Run on the build machine, by `make check`."""
