"""The tools that the model may call. Each makes a `Plan` of its arguments; the plan is what is approved and done.

One file each: `read`, `list`, `search`, `edit` (and `write`), `run` (and `shell`), `fetch`; `own` for the user's
functions, `remote` for the tools of MCP servers.
"""

from dragoman.agent.tools.toolbox import Planner, Toolbox, planner_of

__all__ = ["Planner", "Toolbox", "planner_of"]
