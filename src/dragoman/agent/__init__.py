"""The terminal agent: a model, tools in a work folder, and a person who decides what may be done.

`loop` is the agent without a terminal; `run_calls` runs each call of the model once. `approval`, `limits` and
`sandbox/` keep it within what the user allowed. `session/` records every step before the next one, and shortens long
conversations. `ui/` has the two interfaces: a terminal, and none.
"""
