"""Spans and metrics by OpenTelemetry's GenAI conventions, where the process has an OpenTelemetry SDK.

https://github.com/open-telemetry/semantic-conventions-genai (docs/gen-ai, read 2026-11-22; still "Development").
Attributes hold counts, times and codes. Messages, instructions, tool definitions, arguments and results, which the
conventions make optional, are never recorded.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final, cast

from dragoman.gateway.telemetry.record import Record
from dragoman.protocols import recognition
from dragoman.types import ProtocolName

if TYPE_CHECKING:
    from opentelemetry.trace import Span

#: The names that the conventions have for providers of the catalogue; others go by the catalogue's.
_PROVIDERS: Final[dict[str, str]] = {
    "gemini": "gcp.gemini", "google": "gcp.gemini", "vertex": "gcp.vertex_ai", "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai", "mistral": "mistral_ai", "xai": "x_ai", "watsonx": "ibm.watsonx.ai",
}  # fmt: skip
_TOKENS: Final = (
    ("gen_ai.usage.input_tokens", "input"),
    ("gen_ai.usage.output_tokens", "output"),
    ("gen_ai.usage.cache_read.input_tokens", "cache_read"),
    ("gen_ai.usage.cache_creation.input_tokens", "cache_write"),
    ("gen_ai.usage.reasoning.output_tokens", "reasoning"),
)
_TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))  # 1 … 67,108,864
_SECOND_BUCKETS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)


class OpenTelemetry:
    """Reports each request to the process's SDK."""

    __slots__ = ("_address", "_duration", "_first", "_port", "_server_duration", "_server_first", "_tokens", "_tracer")

    def __init__(self, *, address: str, port: int) -> None:
        """Create it. `address`, `port`: where the gateway listens."""
        from opentelemetry import metrics, trace

        self._address = address
        self._port = port
        self._tracer = trace.get_tracer("dragoman")
        meter = metrics.get_meter("dragoman")

        def seconds(name: str, description: str) -> Any:
            return meter.create_histogram(
                name, unit="s", description=description, explicit_bucket_boundaries_advisory=_SECOND_BUCKETS
            )

        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Tokens of an answer, by kind.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )
        self._duration = seconds("gen_ai.client.operation.duration", "A request to a model.")
        self._first = seconds("gen_ai.client.operation.time_to_first_chunk", "Until something of the answer came.")
        self._server_duration = seconds("gen_ai.server.request.duration", "A request of a client.")
        self._server_first = seconds("gen_ai.server.time_to_first_token", "Until a client got something.")

    def start(self, record: Record) -> None:
        """Start a span in the client's trace. The provider gets this span as its parent."""
        from opentelemetry import propagate, trace

        parent = propagate.extract({"traceparent": record.trace_parent}) if record.trace_parent else None
        span = self._tracer.start_span("chat", context=parent, kind=trace.SpanKind.CLIENT)
        record.span = span
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        record.trace_parent = carrier.get("traceparent", record.trace_parent)

    def finish(self, record: Record, seconds: float) -> None:
        """Record the request in counts and codes. Pages of the gateway itself are no operations of a model."""
        span = cast("Span", record.span)
        if not record.target:
            span.update_name(record.page or "request")
            span.end()
            return
        provider, _, model = record.target.partition("/")
        operation = recognition(cast(ProtocolName, record.client)).operation
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
            "server.address": self._address,
            "server.port": self._port,
        }
        if record.error:
            attributes["error.type"] = record.error
        if record.route:  # a name that a client made up would be one more series
            attributes["gen_ai.request.model"] = model
        self._duration.record(seconds, attributes)
        self._server_duration.record(seconds, attributes)
        if record.first_event is not None:
            self._first.record(record.first_event - record.started, attributes)
            self._server_first.record(record.first_event - record.started, attributes)
        for kind, count in (("input", "input"), ("output", "output")):
            amount = getattr(record.usage, count, None)
            if amount is not None:
                self._tokens.record(amount, {**attributes, "gen_ai.token.type": kind})
        span.update_name(f"{operation} {model}")
        span.set_attributes(attributes | _details(record, model))
        span.end(time.time_ns())


def _details(record: Record, model: str) -> dict[str, Any]:
    """Return what a span has beyond a metric."""
    found: dict[str, Any] = {
        "gen_ai.request.model": model,
        "gen_ai.request.stream": record.stream,
        "dragoman.request.id": record.request_id,
        "dragoman.route": record.route,
        "dragoman.outcome": record.outcome or "failed",
        "dragoman.attempts": len(record.attempts),
    }
    if record.max_tokens is not None:
        found["gen_ai.request.max_tokens"] = record.max_tokens
    if record.stop:
        found["gen_ai.response.finish_reasons"] = (record.stop,)
    if record.provider_request_id:
        found["dragoman.provider.request_id"] = record.provider_request_id
    if record.first_event is not None:
        found["gen_ai.response.time_to_first_chunk"] = record.first_event - record.started
    for name, field in _TOKENS:
        amount = getattr(record.usage, field, None)
        if amount is not None:
            found[name] = amount
    if record.deviations:
        found["dragoman.deviations"] = tuple(sorted(record.deviations))
    return found


def load_telemetry(*, address: str, port: int) -> OpenTelemetry | None:
    """Return the telemetry, or None if this process has no SDK (`opentelemetry-instrument dragoman serve` sets one up).

    Without one nothing is imported and nothing measured.
    """
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import metrics, trace

    has_traces = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    has_metrics = "Proxy" not in type(metrics.get_meter_provider()).__name__
    return OpenTelemetry(address=address, port=port) if has_traces or has_metrics else None
