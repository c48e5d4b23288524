"""What a model can do, by its server, the catalogue and validation. Pure.

A claim is the server's, else the catalogue's, and only if both are silent the one of its family's name. Claims and
evidence stand side by side; evidence wins where one model must be picked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias, TypeVar, final

import msgspec

from dragoman.codec.patterns import rare_pattern
from dragoman.proofs import Proof, is_proven
from dragoman.providers.catalog import Model, nearest, split_target

T = TypeVar("T")
#: Whose word a claim is.
Source: TypeAlias = Literal["server", "catalogue", "family"]

#: Families of which every usual member takes tools, for servers and lists that say nothing.
_FAMILY: Final = rare_pattern(
    r"(?:(?:meta-)?llama-?3\.[23]|mistral(?:-nemo)?|firefunction|command-r(?:-plus)?"
    r"|granite-?(?:[3-9]|[1-9]\d)(?:\.\d+)?)(?![\w.])"
)
#: Members of them that do not.
_NO_MEMBER: Final = rare_pattern(r"vision|guardian|embed|rerank|openorca|-base\b|speech|docling")
#: Names that are shown instead of one that cannot be used.
_SHOWN: Final = 8


@final
class ModelFacts(msgspec.Struct, frozen=True):
    """The facts about one model; None is "not known".

    Attributes:
        target: `provider/model`.
        context: the longest conversation, in tokens; `context_source` is the source.
        tools: whether it is claimed to take tools; `tools_source` is the source.
        thinking: whether it is claimed to think.
        proof: the last valid validation.
        is_there: its server lists it; None if no server was asked.
        is_local: its server is on this machine. That may hand on to a paid one.
    """

    target: str
    context: int | None = None
    context_source: Source | None = None
    tools: bool | None = None
    tools_source: Source | None = None
    thinking: bool | None = None
    proof: Proof | None = None
    is_there: bool | None = None
    is_local: bool = False

    @property
    def proven(self) -> bool | None:
        """Whether validation has shown that its tools work; None if it was not validated."""
        return None if self.proof is None else is_proven(self.proof)

    @property
    def disagreement(self) -> str:
        """How the claim and the evidence differ; "" if they do not."""
        if self.proven is None or self.tools is None or self.proven == self.tools:
            return ""
        if self.tools:
            return "claims tools; validation has not seen them work"
        return "claims no tools; validation has seen them work"


def gather(target: str, *, told: Model | None, listed: Model | None, proof: Proof | None, is_local: bool) -> ModelFacts:
    """Return the facts of one model.

    Args:
        target: `provider/model`.
        told: what its server says; None if it was not asked or does not list it.
        listed: what the catalogue says.
        proof: the last valid validation.
        is_local: its server is on this machine. That may hand on to a paid one.
    """
    context, context_source = _first(
        (told.context if told else None, "server"), (listed.context if listed else None, "catalogue")
    )
    by_name = True if is_of_a_family(split_target(target)[1]) else None
    tools, tools_source = _first(
        (told.tools if told else None, "server"), (listed.tools if listed else None, "catalogue"), (by_name, "family")
    )
    thinking, _ = _first(
        (told.thinking if told else None, "server"), (listed.thinking if listed else None, "catalogue")
    )
    return ModelFacts(
        target,
        context,
        context_source,
        tools,
        tools_source,
        thinking,
        proof,
        is_there=True if told is not None else None,
        is_local=is_local,
    )


def is_of_a_family(model: str) -> bool:
    """Return whether a model's name alone suggests that it takes tools: the last resort."""
    name = model.rpartition("/")[2].lower()
    found = _FAMILY.match(name)
    return found is not None and not _NO_MEMBER.search(name)


def pick_default(facts: Iterable[ModelFacts]) -> ModelFacts | None:
    """Return the default model: a proven one, else one claimed by its server, the catalogue, or its name.

    Among equals the first wins, so pass those of a server in its own order. Models without tools, or that failed
    validation, are never picked; None if nothing is left.
    """
    fit = [one for one in facts if takes_tools(one)]
    return min(fit, key=_rank, default=None)


def takes_tools(facts: ModelFacts) -> bool:
    """Return whether tools may be expected to work: proven, or claimed and not disproven."""
    return facts.proven if facts.proven is not None else facts.tools is True


def find(facts: Sequence[ModelFacts], target: str) -> ModelFacts | None:
    """Return the facts of a target; Ollama's `:latest` may be left out."""
    return next((one for one in facts if one.target in (target, f"{target}:latest")), None)


def check_model(facts: Sequence[ModelFacts], target: str) -> str:
    """Return why a target cannot be used with tools, with names of those that can; "" if nothing is against it.

    Args:
        facts: all known models of its provider, and others to name as alternatives.
        target: `provider/model`.
    """
    provider, model = split_target(target)
    mine = [one for one in facts if split_target(one.target)[0] == provider]
    found = find(mine, target)
    if found is None:
        if not any(one.is_there for one in mine):
            return ""  # no server has said what it has: the catalogue lacks new models
        return f"{provider} has no model {model[:120]!r}{_alternatives(facts, mine, target)}"
    if found.tools is False and not found.proven:
        who = "its server" if found.tools_source == "server" else "the catalogue"
        return f"{target} takes no tools, {who} says{_alternatives(facts, mine, target)}"
    return ""


def _alternatives(facts: Sequence[ModelFacts], mine: Sequence[ModelFacts], target: str) -> str:
    """Return the end of a message: models that take tools, the provider's own first; else what the provider has."""
    fit = sorted((one for one in mine if takes_tools(one)), key=_rank)
    others = sorted((one for one in facts if one not in mine and takes_tools(one)), key=_rank)
    names = [one.target for one in (fit or others)][:_SHOWN]
    if not names:
        own = [split_target(one.target)[1] for one in mine if one.target != target]
        has = f"; it has: {', '.join(own[:_SHOWN])}" if own else ""
        return nearest(split_target(target)[1], own) or has
    return f"; with tools there {'is' if len(names) == 1 else 'are'}: {', '.join(names)}"


def _rank(facts: ModelFacts) -> int:
    if facts.proven:
        return 0
    order: tuple[Source | None, ...] = ("server", "catalogue", "family")
    return 1 + order.index(facts.tools_source) if facts.tools_source in order else 4


def _first(*said: tuple[T | None, Source]) -> tuple[T | None, Source | None]:
    """Return the first known value and its source."""
    return next(((value, source) for value, source in said if value is not None), (None, None))
