"""A Python process that has one of its own threads followed: `clew.follow_me`.

Runs in that process, but for `helper` and what that imports, which run in a process of their own: nobody can trace
itself (ptrace(2)).
"""
