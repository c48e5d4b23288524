"""Describe what the sandbox guarantees on this machine, for the first lines of a chat and for `dragoman doctor`."""

from __future__ import annotations

from typing import Final, final

import msgspec

from dragoman.agent.sandbox.bubblewrap import Fence

_FIX: Final = (
    "install bubblewrap (apt install bubblewrap), and allow user namespaces: sysctl user.max_user_namespaces,"
    " kernel.unprivileged_userns_clone, or AppArmor's profile of bwrap"
)
_NO_FILTER: Final = (
    "No filter of system calls is known for this machine: /run, /tmp and the sockets that are open now are hidden,"
    " one that is opened elsewhere later is not."
)


@final
class Guarantees(msgspec.Struct, frozen=True):
    """A description: `summary` in a few words, `gaps` one sentence each, and `fix` for what to do about them."""

    is_sandbox: bool
    summary: str
    gaps: tuple[str, ...] = ()
    fix: str = ""


def describe_fence(fence: Fence | None, *, is_wanted: bool, is_superuser: bool) -> Guarantees:
    """Describe where the agent's commands run. `is_wanted` False: the user's file says `sandbox = false`."""
    if not is_wanted:
        return Guarantees(False, "commands run without a sandbox, as your file says")
    asked = "each one is shown and asked, whatever is allowed" if is_superuser else "each one is shown and asked"
    if fence is None:
        gap = f"Commands run as you: they reach your files, keys and the network; {asked}."
        return Guarantees(False, "commands run WITHOUT a sandbox", (gap,), _FIX)
    if not fence.has_user_namespace:
        gap = f"This system gives no user namespaces, so a command stays who you are in the kernel's eyes; {asked}."
        return Guarantees(False, "commands run WITHOUT a sandbox, only fenced", (gap,), "allow user namespaces: sysctl"
                       " user.max_user_namespaces")  # fmt: skip
    gaps = []
    if fence.filter is None:
        gaps.append(_NO_FILTER)
    if "--size" not in fence.features:
        gaps.append("This bubblewrap cannot bound /tmp: its size counts as the command's memory.")
    fix = "use bubblewrap 0.8 or newer" if "--size" not in fence.features else ""
    return Guarantees(True, f"commands run in a sandbox{' that lacks something' if gaps else ''}", tuple(gaps), fix)
