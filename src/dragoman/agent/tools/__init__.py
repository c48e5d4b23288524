"""The tools that the model may call. Each turns its arguments into a `Plan`, which is approved and done.

One file each: `read`, `list`, `search`, `edit` (and `write`), `run` (and `shell`), `fetch`; `own` for the user's
functions, `remote` for the tools of MCP servers.
"""

from dragoman.agent.tools.toolbox import Planner, Toolbox, planner_of

__all__ = ["Planner", "Toolbox", "planner_of"]
