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
    "bare-json-line": ("A line of JSON stands in an event stream without `data:`, or several values stand in one line.", "Each is read as an event."),
    "double-data-prefix": ("An event's data begins with another `data:`.", "The second prefix is dropped."),
    "stray-text": ("Text stands between events that is neither a field nor JSON.", "It is ignored. If nothing else comes, it becomes the error's message."),
    "mislabelled-gzip": ("The body is packed with gzip or zlib although it was asked for plain.", "It is unpacked, up to the size limit."),
    "json-for-stream": ("A whole JSON response came although the request asked for a stream.", "It is read as the response."),
    "stream-for-json": ("An event stream came although the request asked for a whole response.", "It is read as the response."),
    "envelope": ("The response is wrapped in another object.", "The wrapper is removed."),
    "unreadable-frame": ("A frame is not JSON.", "It is skipped. Every call that is open at that moment fails."),
    "invalid-utf8": ("Bytes are not UTF-8.", "They become U+FFFD."),
    "control-character": ("A raw control character stands in a JSON string.", "The string is read with it."),
    "lone-surrogate": ("An escape is half of a surrogate pair.", "It waits for its other half. Without one it becomes U+FFFD."),
    "after-end": ("Something follows the end of the response, or of the part it belongs to.", "It is ignored, except for usage."),
    "no-end-marker": ("The last marker of the stream is missing after a stop reason.", "The response counts as ended."),
    "empty-response": ("The response ended well and holds nothing.", "It is an empty answer."),
    # ------------------------------------------------------------ shape
    "wrong-type": ("A field has another type than its specification says.", "It is read if its meaning is certain. Otherwise it is ignored."),
    "repeated-key": ("An object tells a text under a key that stands in it twice, with different values.", "The last one counts."),
    "missing-field": ("A field that the specification requires is absent.", "Its default value is used."),
    "unknown-event": ("The specification has no such event type.", "It is ignored."),
    "unknown-part": ("A part that dragoman does not model.", "It is kept as an opaque part."),
    "sibling-key": ("A key has the spelling of a related dialect.", "It is read as the field it stands for."),
    "extra-choice": ("The response has more than one choice or candidate.", "Those with the first one's index are merged. The others are ignored."),
    "ignored-call": ("A tool call stands in a choice or a candidate that is not read.", "It is not delivered. Where it passed to a client, the answer fails."),
    "missing-start": ("The stream has no opening event.", "dragoman adds one."),
    "duplicate-start": ("The stream has a second opening event.", "It is ignored."),
    "part-not-opened": ("A delta belongs to a part that was never opened.", "The part is opened."),
    "part-not-closed": ("A part was not closed before the end.", "It is closed."),
    "cumulative-text": ("Each piece of a text says all that came before it again.", "Only what is new is told. Three pieces in a row prove it, the first ones of the text, where what they say again has six different characters and two words (or 16 characters); until then they wait. At the end of a text two are enough. One piece that says a whole text again is text: it may be a refrain."),
    "duplicate-final": ("A final event repeats what its deltas said.", "Only what is new is added."),
    "final-differs": ("A final event contradicts what its deltas said.", "Text: the deltas count. Call: it fails, or the whole answer does if the call was already delivered."),
    "empty-error": ("An `error` field is present but empty.", "It is ignored."),
    # ------------------------------------------------------------ calls
    "missing-id": ("A tool call has no id.", "dragoman makes one up."),
    "duplicate-id": ("Two tool calls have the same id.", "The later one gets an id of its own."),
    "changing-id": ("A tool call's id changes while it streams.", "The first id is kept."),
    "late-id": ("A tool call's id comes after its first fragment.", "It is used if nothing of the call was delivered yet. Otherwise the call keeps the id that dragoman made up."),
    "missing-type": ("A tool call has no `type`.", "It is a function call."),
    "missing-index": ("A tool call has no index.", "Its id, its name and whether it is complete tell it apart from other calls."),
    "odd-index": ("A call's index is text, negative, out of order, or leaves out others.", "It is used only to tell calls apart."),
    "reused-index": ("A new call comes at an index that is in use.", "It is a call of its own."),
    "missing-name": ("A tool call has no name.", "dragoman waits for the name. If none comes, the call fails."),
    "late-name": ("A tool call's name comes after its first fragment.", "The call opens when its name is known."),
    "repeated-name": ("A tool call's name is sent again with a later fragment.", "It is not appended."),
    "split-name": ("A tool call's name comes in pieces.", "They are joined."),
    "missing-arguments": ("A finished call has no arguments (absent, null or empty).", "They are `{}`."),
    "arguments-type": ("Arguments are an object where text belongs, or text where an object belongs.", "They are read."),
    "placeholder-arguments": ("`{}` or `null` stands beside the real arguments.", "It is dropped."),
    "double-encoded-arguments": ("Arguments are JSON text inside a JSON string.", "The inner text is used."),
    "surplus-arguments": ("Something follows the closing brace of the arguments.", "Code fences and special tokens are dropped. Anything else fails the call."),
    "repeated-arguments": ("The same arguments were sent twice.", "They count once."),
    "concatenated-calls": ("Several argument objects stand in one call.", "Each is a call, but one without any key of the first fails if several tools were offered."),
    "lost-arguments": ("Arguments came that could belong to several calls.", "A final event may say which call they belong to. Without one, those calls fail."),
    "duplicate-call": ("A whole call was sent twice under one id.", "It counts once."),
    "repaired-arguments": ("Arguments are almost JSON.", "They are repaired if there is only one way to read them."),
    "coerced-arguments": ("A value is not of the type that the tool's schema asks for.", "It is converted if its meaning is certain."),
    "arguments-misfit": ("Arguments do not fit the tool's schema.", "They are delivered as they are."),
    "arguments-unjudged": ("The tool's schema asks for more looks at arguments than their length is worth: alternatives of alternatives.", "What was not judged is delivered as it is, and not converted."),
    "unread-field": ("A key or an event that the protocol does not have looks like a tool call, or like another spelling of the answer's text.", "It is not read. If it looks like a call, every call that is open and not whole fails, or one more where none is. Arguments fail the calls that came without any."),
    "legacy-function-call": ("A call came in the old `function_call` field.", "It is read as a tool call."),
    "rescued-call": ("A tool call was written as text.", "It becomes a tool call, and its markup is removed from the text."),
    "parallel-wrapper": ("Several calls are packed into one call of a `parallel` tool that was not offered.", "Each is a call."),
    "thinking-as-text": ("Thinking was written into the text, between tags.", "It becomes thinking, and the tags are removed from the text."),
    "mangled-name": ("A tool's name has white space, a prefix, a suffix or markup around it.", "It is cleaned up if the result is exactly the name of an offered tool."),
    "unknown-tool": ("A call names a tool that was not offered.", "It is delivered with that name."),
    # ------------------------------------------------------------ ends and counts
    "stop-reason": ("The stop reason contradicts the response, or is not one of the protocol's.", "What came decides, by the rules for stop reasons."),
    "late-stop-reason": ("The response has several stop reasons.", "The last one counts, but `stop` never replaces another."),
    "missing-stop-reason": ("The response ended without a stop reason.", "It is inferred from what came."),
    "usage-place": ("Usage is in an unexpected place, or its numbers are odd.", "It is read."),
    "context-truncated": ("The server read far fewer prompt tokens than were sent.", "The answer goes on. The model has seen only a part of the request."),
    # ------------------------------------------------------------ requests and rendering
    "dropped": ("The target's protocol or dialect has no such field.", "It is left out."),
    "untranslated": ("A field or part of a request or an answer exists in one protocol only.", "It is left out. The path names it."),
    "moved": ("The target's protocol has a field in another place.", "It is sent there, so its order may change."),
    "changed": ("The target's protocol allows other values.", "The nearest allowed value is sent."),
    "unwelcome": ("The vendor says that this model refuses what the client asks, and no other request means the same.", "It is sent. The provider's answer decides."),
    "tools-way": ("The server or its model knows no tools.", "The request is sent once more with another way of asking for tools, or without tools."),
    "structured-answer": ("The answer is not the JSON object that was asked for in place of tool calls.", "What is not a call is passed on as text."),
    "unvalidated": ("A route may only use validated targets, and none of its targets is validated.", "One is asked all the same, because `allow_one_unvalidated` allows it."),
}  # fmt: skip

#: Those of a wire with which a client that knows the specification alone reads the same calls as we do. What comes
#: behind the end of an answer does not reach it.
HARMLESS_TO_CALLS: Final = frozenset({
    "after-end", "changing-id", "context-truncated", "duplicate-final", "empty-error", "late-id", "late-stop-reason",
    "missing-arguments", "missing-id", "missing-start", "missing-stop-reason", "no-end-marker", "repeated-key", "stop-reason",
    "thinking-as-text", "unknown-event", "unknown-part", "usage-place",
})  # fmt: skip
SEEN_LIMIT: Final = 200


def part_path(at: tuple[int, ...]) -> str:
    """Return where a part of a request stands, `messages[2].parts[0]`: the numbers of its message, of itself, and so
    on.
    """
    if len(at) == 2:  # as nearly all do, by the thousand where ids repeat
        return f"messages[{at[0]}].parts[{at[1]}]"
    message, *parts = at
    return f"messages[{message}]" + "".join(f".parts[{number}]" for number in parts)


def clip(seen: object) -> str:
    """Return a seen value as text of at most 200 bytes; lone surrogates become question marks."""
    text = seen if isinstance(seen, str) else repr(seen)
    data = text.encode("utf-8", "replace")
    return data.decode() if len(data) <= SEEN_LIMIT else data[: SEEN_LIMIT - 3].decode("utf-8", "ignore") + "…"
