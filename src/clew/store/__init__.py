"""A trace on disk: a folder of Parquet tables with one manifest.

Runs in the controller. What the tables are for is not known here, only their shape; no process is.
"""
