"""Sessions of recording, and what becomes of what they recorded. A folder may import those below it:

    session     one run, from what is asked to the trace: a target, a loop, sinks
    control     commands to a recording that goes on
    live        what is seen of one
    reading     from a journal back to what was recorded
    following   the processes, while they run
    assembly    from what was recorded to the tables of a trace; in `region` what is that mode's alone
    drain       what empties the shared memory of a process
    journal     how what comes is kept
    sinks       who is given what comes: the interface
    raw         what was recorded, as plain data
    options     what is asked

Runs in the controller. How a trace is looked at is not known here.
"""
