"""A stand-in for an OpenTelemetry SDK that remembers what it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags


class Span(NonRecordingSpan):
    """A span that keeps its name and attributes."""

    def __init__(self, name: str, context: SpanContext, parent: SpanContext | None, kind: SpanKind) -> None:
        super().__init__(context)
        self.name = name
        self.parent = parent
        self.kind = kind
        self.attributes: dict[str, Any] = {}
        self.is_ended = False

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        self.attributes.update(attributes)

    def update_name(self, name: str) -> None:
        self.name = name

    def end(self, end_time: int | None = None) -> None:
        self.is_ended = True


class Tracer:
    """Makes spans, one after the other."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def start_span(self, name: str, context: Any = None, kind: SpanKind = SpanKind.INTERNAL, **rest: Any) -> Span:
        parent = trace.get_current_span(context).get_span_context()
        is_child = parent.is_valid
        number = len(self.spans) + 1
        own = SpanContext(
            parent.trace_id if is_child else number, number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
        )
        self.spans.append(Span(name, own, parent if is_child else None, kind))
        return self.spans[-1]


class Histogram:
    """Keeps its values."""

    def __init__(self, name: str, bounds: Sequence[float]) -> None:
        self.name = name
        self.bounds = bounds
        self.values: list[tuple[float, dict[str, Any]]] = []

    def record(self, amount: float, attributes: Mapping[str, Any]) -> None:
        self.values.append((amount, dict(attributes)))


class Meter:
    """Makes histograms."""

    def __init__(self) -> None:
        self.histograms: dict[str, Histogram] = {}

    def create_histogram(
        self, name: str, unit: str, description: str, *, explicit_bucket_boundaries_advisory: Sequence[float]
    ) -> Histogram:
        self.histograms[name] = Histogram(name, explicit_bucket_boundaries_advisory)
        return self.histograms[name]
