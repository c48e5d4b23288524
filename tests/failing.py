"""Providers that fail before they have said anything: nine failures at three places, in every protocol."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from cases import counter
from dragoman.events import Event, Failure, FailureKind, Start, TextStart
from dragoman.protocols import PROTOCOLS
from scripted import END, Scripted, Step, chunk, head

FAILURES = ("refuse", "tls", "429", "500", "529", "error", "empty", "stall", "reset")
PLACES = ("before the head", "after the head", "after the preamble")
_KINDS: dict[str, FailureKind] = {"429": "rate", "500": "internal", "529": "overloaded", "error": "overloaded"}
_WORDS = {"429": "slow down", "500": "something broke", "529": "overloaded", "error": "overloaded"}


class Broken(NamedTuple):
    """A failure, where in the answer it strikes, and the protocol of the provider."""

    failure: str
    place: str
    protocol: str

    def __str__(self) -> str:
        return f"{self.failure}-{self.place.replace(' the ', '-')}-{self.protocol}"

    @property
    def server(self) -> str:
        """Which server it needs: "plain", "closed" (nobody listens), "https" (TLS is spoken to one that does not),
        "tls" (one whose TLS breaks)."""
        if self.failure == "refuse" and self.place == PLACES[0]:
            return "closed"
        if self.failure == "tls":
            return "https" if self.place == PLACES[0] else "tls"
        return "plain"


BROKEN = [Broken(failure, place, protocol) for failure in FAILURES for place in PLACES for protocol in PROTOCOLS]


def wire(protocol: str, *events: Event) -> bytes:
    """What a provider of that protocol writes of these events, after those that it begins with."""
    encoder = PROTOCOLS[protocol].encoder(new_id=counter(), model="other", created=1_700_000_000)
    began = len(encoder.encode([]))
    return encoder.encode(list(events))[began:]


def preamble(protocol: str) -> bytes:
    """The beginning of an answer that says nothing yet."""
    match protocol:
        case "ollama-chat":
            return (
                b'{"model":"other","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""}}\n'
            )
        case "gemini-generate":
            return b'data: {"responseId":"other","modelVersion":"other","usageMetadata":{"promptTokenCount":3}}\n\n'
        case _:
            return wire(protocol, Start("other", "other", 1_700_000_000), TextStart(0))


def error_event(protocol: str, failure: str) -> bytes:
    """An error inside a stream."""
    events = [Start("other", "other", 1_700_000_000), Failure(_KINDS[failure], _WORDS[failure], None)]
    return wire(protocol, *events)[len(wire(protocol, events[0])) :]


def steps(broken: Broken) -> Sequence[Step]:
    """What the server does; for those of kind "tls" what it does inside TLS, before that breaks."""
    failure, place, protocol = broken
    form = PROTOCOLS[protocol]
    began: list[Step] = [] if place == PLACES[0] else [head(200, form.stream_type)]
    if place == PLACES[2]:
        began.append(chunk(preamble(protocol)))
    match failure:
        case "refuse" | "tls":
            return [*began, 0.02, "close"]
        case "stall":
            return [*began, "hold"]
        case "reset":
            return [*began, 0.02, "reset"]
        case "empty":
            return [*(began or [head(200, form.stream_type)]), END]
        case "error":
            return [*(began or [head(200, form.stream_type)]), chunk(error_event(protocol, failure)), END]
    if place == PLACES[2]:
        return [*began, chunk(error_event(protocol, failure)), END]
    _, body = form.render_error(Failure(_KINDS[failure], _WORDS[failure], int(failure)))
    first = head(int(failure), "application/json")
    return [first + chunk(body) + END] if place == PLACES[0] else [first, 0.02, chunk(body), END]


# ---------------------------------------------------------------- servers


@contextmanager
def closed_port() -> Iterator[str]:
    """An address at which nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unused.getsockname()[1]}"


@contextmanager
def speaking_plain() -> Iterator[str]:
    """The address, with https, of a server that speaks no TLS and says so at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    serving.join(5)


@contextmanager
def breaking_tls(certificate: Path) -> Iterator[Scripted]:
    """A server whose TLS turns to nonsense where its steps end.

    Args:
        certificate: a file that is written: the certificate to trust.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    key = certificate.with_suffix(".key")
    _write_certificate(certificate, key)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Scripted(f"https://127.0.0.1:{listener.getsockname()[1]}", [[]])
        threads: list[threading.Thread] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=_break, args=(server, connection, context), daemon=True))
                threads[-1].start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
    for thread in (accepting, *threads):
        thread.join(5)


def _break(server: Scripted, connection: socket.socket, context: ssl.SSLContext) -> None:
    bare = connection.dup()
    with contextlib.suppress(OSError), bare, context.wrap_socket(connection, server_side=True) as secured:
        seen = b""
        while b"\r\n\r\n" not in seen:
            data = secured.recv(65536)
            if not data:
                return
            seen += data
        for step in server.next_reply():
            if isinstance(step, bytes):
                secured.sendall(step)
        bare.sendall(b"this is no TLS record" * 8)
        bare.shutdown(socket.SHUT_WR)
        while bare.recv(65536):
            pass


def _write_certificate(certificate: Path, key: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(secret, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    key.write_bytes(secret.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
