"""What is taken at a place in code: the expression language, its typed form, and what the form means.

Runs in the controller. `grammar` reads text, `compiler` makes the form of it, `interpreter` is the form's meaning in
plain Python, against which every other back-end is held.
"""
