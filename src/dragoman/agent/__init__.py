"""The terminal agent: a model, tools in a work folder, and a person who says what may be done.

`loop` is the agent without a terminal; `calls` runs what the model asks for, once each; `approval`, `confinement`,
`sandbox` and `limits` keep it within what the user allowed; `session` writes every step down before the next is taken;
`compaction` tells long conversations in short. `headless` and `terminal` are the two faces.
"""
