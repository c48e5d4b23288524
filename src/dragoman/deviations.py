"""Every way in which a wire may break its specification without ending the response.

A code is a stable, searchable word. `DEVIATIONS` says for each what was seen and what dragoman does.
"""

from __future__ import annotations

from typing import Final

#: code → (what was seen, what dragoman does)
DEVIATIONS: Final[dict[str, tuple[str, str]]] = {
    # ------------------------------------------------------------ framing
    "byte-order-mark": ("The body begins with a byte order mark.", "It is skipped."),
    "single-newline": ("Events end with one newline instead of a blank line.", "Each `data:` line that decodes alone is an event."),
    "bare-json-line": ("A line of JSON stands in an event stream without `data:`.", "It is read as an event."),
    "double-data-prefix": ("An event's data begins with another `data:`.", "The second prefix is dropped."),
    "stray-text": ("Text stands between events that is neither a field nor JSON.", "It is ignored; alone, it is the error's message."),
    "mislabelled-gzip": ("The body is gzip although no header says so.", "It is decompressed, up to the size limit."),
    "json-for-stream": ("A whole JSON response came where a stream was asked.", "It is read as the response."),
    "stream-for-json": ("An event stream came where a whole response was asked.", "It is read as the response."),
    "envelope": ("The response is wrapped in another object.", "The wrapper is taken off."),
    "unreadable-frame": ("A frame is not JSON.", "It is skipped; every call open at that moment fails."),
    "invalid-utf8": ("Bytes are not UTF-8.", "They become U+FFFD."),
    "control-character": ("A raw control character stands in a JSON string.", "The string is read with it."),
    "lone-surrogate": ("An escape is half of a surrogate pair.", "It waits for its other half, else becomes U+FFFD."),
    "after-end": ("Something follows the end of the response, or of the part it belongs to.", "It is ignored, usage excepted."),
    "no-end-marker": ("The last marker of the stream is missing after a stop reason.", "The response counts as ended."),
    "empty-response": ("The response ended well and holds nothing.", "It is an empty answer."),
    # ------------------------------------------------------------ shape
    "wrong-type": ("A field has another type than its specification says.", "It is read when its meaning is sure, else ignored."),
    "missing-field": ("A field that the specification requires is absent.", "A default stands in for it."),
    "unknown-event": ("An event type that the specification does not have.", "It is ignored."),
    "unknown-part": ("A part that dragoman does not model.", "It is kept as an opaque part."),
    "sibling-key": ("A key of a sibling dialect or another spelling.", "It is read as the field it stands for."),
    "extra-choice": ("More than one choice or candidate.", "Those of the first one's index are merged, others ignored."),
    "missing-start": ("The stream has no opening event.", "It is made up."),
    "duplicate-start": ("The stream has a second opening event.", "It is ignored."),
    "part-not-opened": ("A delta for a part that was not opened.", "The part is opened."),
    "part-not-closed": ("A part was not closed before the end.", "It is closed."),
    "duplicate-final": ("A final event repeats what its deltas said.", "What was not said yet is added, the rest is ignored."),
    "final-differs": ("What is told twice differs.", "Of a text the deltas stand; a call fails, the answer where it has left."),
    "empty-error": ("An `error` field that holds nothing.", "It is ignored."),
    # ------------------------------------------------------------ calls
    "missing-id": ("A tool call has no id.", "One is made up."),
    "duplicate-id": ("Two tool calls have the same id.", "The later one gets an id of its own."),
    "changing-id": ("A tool call's id changes while it streams.", "The first one stands."),
    "late-id": ("A tool call's id comes after its first fragment.", "It is used when nothing was handed out yet, else the made-up one stands."),
    "missing-type": ("A tool call has no `type`.", "It is a function call."),
    "missing-index": ("A tool call has no index.", "It is told apart by id, name and completeness."),
    "odd-index": ("A call's index is text, negative, or out of order.", "It only tells calls apart."),
    "reused-index": ("A new call comes at an index that is in use.", "It is a call of its own."),
    "missing-name": ("A tool call has no name.", "Its name is awaited; without one the call fails."),
    "late-name": ("A tool call's name comes after its first fragment.", "The call opens when its name is known."),
    "repeated-name": ("A tool call's name is sent again with a later fragment.", "It is not appended."),
    "split-name": ("A tool call's name comes in pieces.", "They are joined."),
    "missing-arguments": ("A finished call has no arguments (absent, null or empty).", "They are `{}`."),
    "arguments-type": ("Arguments are an object where text belongs, or text where an object belongs.", "They are read."),
    "placeholder-arguments": ("`{}` or `null` stands beside the real arguments.", "It is dropped."),
    "double-encoded-arguments": ("Arguments are JSON text inside a JSON string.", "The inner text is used."),
    "surplus-arguments": ("Residue follows the closing brace of the arguments.", "Fences and tokens are dropped; anything else fails the call."),
    "repeated-arguments": ("The same arguments were sent twice.", "They count once."),
    "concatenated-calls": ("Several argument objects stand in one call.", "Each is a call."),
    "lost-arguments": ("Arguments came that several calls may own.", "A final event tells whose they are; without one those calls fail."),
    "duplicate-call": ("A whole call was sent twice under one id.", "It counts once."),
    "repaired-arguments": ("Arguments are almost JSON.", "They are repaired where there is only one reading."),
    "coerced-arguments": ("A value is not of the type that the tool's schema asks for.", "It is turned into it where its meaning is sure."),
    "arguments-misfit": ("Arguments do not fit the tool's schema.", "They are delivered as they are."),
    "legacy-function-call": ("A call came in the old `function_call` field.", "It is read as a tool call."),
    "rescued-call": ("A tool call was written as text.", "It is a tool call; its markup leaves the text."),
    "parallel-wrapper": ("Several calls are packed into one call of a `parallel` tool that was not offered.", "Each is a call."),
    "thinking-as-text": ("Thinking was written into the text, between tags.", "It is thinking; the tags leave the text."),
    "mangled-name": ("A tool's name has white space, a prefix, a suffix or markup around it.", "It is cleaned when that gives an offered name exactly."),
    "unknown-tool": ("A call names a tool that was not offered.", "It is delivered under that name."),
    # ------------------------------------------------------------ ends and counts
    "stop-reason": ("The stop reason contradicts the response, or is not one of the protocol's.", "The policy of stop reasons decides."),
    "late-stop-reason": ("Several stop reasons.", "The last wins, except that `stop` replaces no other."),
    "missing-stop-reason": ("The response ended without a stop reason.", "It is told from what came."),
    "usage-place": ("Usage stands where the specification has none, or has odd figures.", "It is read."),
    "context-truncated": ("The server read far fewer prompt tokens than were sent.", "The answer goes on; the model saw less than the request."),
    # ------------------------------------------------------------ requests and rendering
    "dropped": ("The target's protocol or dialect cannot say a field.", "It is left out."),
    "untranslated": ("A protocol has no place for what only another one knows: a field or part of a request or of an answer.", "It is left out; the path names it."),
    "moved": ("The target's protocol says a field elsewhere.", "Its place among its neighbours changes."),
    "changed": ("The target's protocol allows other values.", "The nearest allowed value is sent."),
    "tools-way": ("The server or its model knows no tools.", "They are asked for once more in another way, or left out."),
    "structured-answer": ("An answer is not the JSON object that stands in for tools.", "What is no call passes as text."),
    "unvalidated": ("A route asks only validated targets, and has none.", "It is asked all the same, as `allow_one_unvalidated` says."),
}  # fmt: skip

SEEN_LIMIT: Final = 200


def part_path(at: tuple[int, ...]) -> str:
    """Where a part of a request stands, `messages[2].parts[0]`: the numbers of its message, of itself, and so on."""
    if len(at) == 2:  # as nearly all do, by the thousand where ids repeat
        return f"messages[{at[0]}].parts[{at[1]}]"
    message, *parts = at
    return f"messages[{message}]" + "".join(f".parts[{number}]" for number in parts)


def clip(seen: object) -> str:
    """What was seen, as text of at most 200 bytes; half surrogate pairs become question marks."""
    text = seen if isinstance(seen, str) else repr(seen)
    data = text.encode("utf-8", "replace")
    return data.decode() if len(data) <= SEEN_LIMIT else data[: SEEN_LIMIT - 3].decode("utf-8", "ignore") + "…"
