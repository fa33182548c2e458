"""What is in an ELF file: headers, symbols, source lines, instructions.

Runs in the controller. Files only: no process and no trace is known here. A file may have been made by the target, so
everything read is bounded and checked.
"""
