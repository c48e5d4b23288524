"""Recognise errors that say that a server or a model has no tools: `llama3 does not support tools`."""

from __future__ import annotations

import re
from typing import Final

from dragoman.codec.patterns import rare_pattern
from dragoman.events import Failure

_TOOLS: Final = (
    r"[`'\"]?\b(?:native )?(?:tools|functions|tool[ _-]?(?:us(?:e|age)|call(?:s|ing)?)"
    r"|function[ _-]?call(?:s|ing)?)\b[`'\"]?"
)
_NOT_ALL: Final = (  # what follows when only some tools, or tools beside something else, are refused
    r"(?![\w\[(]|\.\w)(?! ?(?:choice|results?|messages?|outputs?|inputs?|types?|names?|schemas?|mode|of|named|together"
    r"|alongside|combined|in combination|when|while|with (?:an? |the )?(?!this|these|model|the model)\w+)\b)"
)
_NO_TOOLS: Final = rare_pattern(
    r"(?:(?:does|do)(?:n['’]?t| not)|can(?:not|['’]?t)) (?:currently )?(?:support|use|handle|accept) "
    rf"{_TOOLS}{_NOT_ALL}"
    rf"|(?:^|[\d.,:;(>] ?|\b(?:the|that|because|use of) ){_TOOLS} (?:is|are|has|have)(?:n['’]t| not)(?: been)?"
    rf"(?: currently| yet| fully)* (?:supported|enabled|available|allowed|permitted){_NOT_ALL}"
    r"|(?:unsupported|unknown|unrecognized|unexpected)(?: request)? (?:param(?:eter)?|argument|field|key|property)s?"
    r"(?: supplied)?:? [`'\"]?tools[`'\"]?(?![.\w\[])"
    r"|(?<![.\w])tools: extra (?:fields|inputs)|no endpoints found that support tool use"
    r"|requires? --(?:enable-auto-tool-choice|tool-call-parser|jinja)|tool (?:use|calling) is unsupported"
    r"|不支持 ?(?:工具|函数调用|tools?\b|function)",
    re.IGNORECASE,
)


def refuses_tools(failure: Failure) -> bool:
    """Return whether a failure says that the server or its model has no tools at all, so that another way may work.

    Some use the status of another fault: OpenRouter 404, llama.cpp 500.
    """
    return failure.kind in ("bad_request", "not_found", "internal") and _NO_TOOLS.search(failure.message) is not None
