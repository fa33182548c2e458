"""Probes in a program's own code: what is to be patched, and where the displaced instructions go.

Runs in the controller. Pure: no process is touched here, everything takes bytes and addresses.
"""
