"""The viewer's server: traces as JSON and typed arrays, and the built page. Loopback only unless told.

Runs in the controller. It reads traces and answers; what to draw is the page's business.
"""
