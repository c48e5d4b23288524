# ruff: noqa: E501 - tables of requests, which a line end would tear
"""Reports of conversations: roles, results, thinking and media that were lost, or that the next vendor refused."""

from __future__ import annotations

from typing import Final

from asked.writing import (
    ASK,
    GONE,
    PDF,
    PIXEL,
    PNG_URL,
    Refused,
    Says,
    answered,
    called,
    case,
    chat,
    function,
    gemini,
    messages,
    ollama,
    responses,
    result,
    says,
    tells,
    tool,
    used,
)  # fmt: skip

IMAGE: Final = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
DOCUMENT: Final = {
    "type": "document",
    "title": "T",
    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
}
SOUND: Final = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
SEEN: Final = {"type": "text", "text": "Seen."}
FEATURE: Final = '{"type": "Feature", "x": 1}'
SEARCHED: Final = "The tool web_search was used.\nquery: rain\nIt returned:\nurl: https://a.test\ntitle: A"
GO: Final = {"type": "text", "text": "Go on."}
THOUGHT: Final = {"type": "thinking", "thinking": "Hm.", "signature": "c2VhbA=="}
TWO: Final = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
    {"id": "call_2", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}  # fmt: skip
TWINS: Final = {"role": "assistant", "content": None, "tool_calls": [
    {"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}} for id in ("x", "x", "x_2")]}  # fmt: skip
#: A call of Gemini with its seal.
SEALED: Final = (
    {"role": "user", "parts": [{"text": "x"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "c2VhbA=="}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "rain"}}}]},
)
UUID: Final = "chatcmpl-tool-0123456789abcdef0123456789abcdef0123456789"
#: Files by the address at which one vendor keeps them, and who can read them.
STORED: Final = [
    (
        "openai-chat",
        chat(tells({"type": "file", "file": {"file_id": "file-a1"}}, GO)),
        {
            "chat": ("messages[0].content[0].file.file_id", "file-a1"),
            "responses": ("input[0].content[0].file_id", "file-a1"),
        },
    ),
    (
        "openai-chat",
        chat(tells({"type": "file", "file": {"file_id": "file_011"}}, GO)),
        {
            "chat": ("messages[0].content[0].file.file_id", "file_011"),
            "messages": ("messages[0].content[0].source.file_id", "file_011"),
        },
    ),
    *(
        (
            "openai-chat",
            chat(tells({"type": "file", "file": {"file_id": id}}, GO)),
            {
                "chat": ("messages[0].content[0].file.file_id", id),
                "responses": ("input[0].content[0].file_id", id),
            },
        )
        for id in ("file_0b1e6c3a-4f83-84d9-8edc-9f04fe49f832", "0b1e6c3a-4f83-84d9-8edc-9f04fe49f832", "assistant-a1")
    ),
    (
        "openai-responses",
        responses(tells({"type": "input_image", "file_id": "file-a1"}, {"type": "input_text", "text": "Go on."})),
        {"responses": ("input[0].content[0].file_id", "file-a1")},
    ),
    (
        "anthropic-messages",
        messages(tells({"type": "image", "source": {"type": "file", "file_id": "file_011"}}, GO)),
        {"messages": ("messages[0].content[0].source.file_id", "file_011")},
    ),
    *(
        (
            "gemini-generate",
            gemini(
                {"role": "user", "parts": [{"fileData": {"fileUri": uri, "mimeType": "image/png"}}, {"text": "Go on."}]}
            ),
            {"gemini": ("contents[0].parts[0].fileData.fileUri", uri)},
        )
        for uri in ("gs://b/a.png", "https://generativelanguage.googleapis.com/v1beta/files/a1")
    ),
]

CASES: Final = [
    case("a system message in the middle", "openai-chat", chat(
        {"role": "system", "content": "Be brief."}, ASK, {"role": "assistant", "content": "Rain."},
        {"role": "system", "content": "Now in French."}, {"role": "user", "content": "And now?"}),
         messages=({"system[0].text": "Be brief.", "messages[2].role": "user"}, Says("messages[3]")),
         gemini=({"systemInstruction.parts[1].text": "Now in French."}, Says("messages[3]")),
         responses={"input[2].role": "developer"}, ollama={"messages[3].role": "system"},
         vllm=({"messages[3].role": "user"}, Says("messages[3]")), llamacpp={"messages[3].role": "user"}),
    case("a system message in the middle", "anthropic-messages", messages(
        ASK, {"role": "system", "content": "Tools came."}, system="Be brief."),
         chat={"messages[2].role": "developer"}, vllm={"messages[0].role": "system", "messages[1].role": "user"},
         messages={"messages[1].role": "system"}, minimax=({"messages[1].role": "user"}, Says("messages[2]"))),
    case("a system message alone", "openai-chat", chat({"role": "system", "content": "Say hello."}),
         messages={"messages[0].role": "user"}, gemini={"contents[0].role": "user"}),
    case("a developer's message", "openai-chat", chat({"role": "developer", "content": "Be brief."}, ASK),
         vllm={"messages[0].role": "system"}, messages={"system[0].text": "Be brief."}, ollama={"messages[0].role": "system"}),
    case("a developer's items", "openai-responses", responses(
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"role": "user", "content": "x"}, instructions="Help."),
         chat={"messages[0].content": "Help.", "messages[1].role": "developer"},
         vllm={"messages[0]": {"role": "system", "content": "Help.\n\nBe brief."}, "messages[1]": {"role": "user", "content": "x"}},
         messages={"system[0].text": "Help.", "system[1].text": "Be brief."}),
    case("two turns of the user", "openai-chat", chat(ASK, {"role": "user", "content": "Quick."}),
         messages={"messages[0].content[0].text": "Weather in Rome?"}, vllm={"messages[1]": GONE}),
    case("two turns of the model", "openai-chat", chat(ASK, {"role": "assistant", "content": "Well."}, called(), answered()),
         gemini={"contents[1].parts[0].text": "Well.", "contents[1].parts[1].functionCall.name": "look"}),
    case("a turn of the model first", "openai-chat", chat(called(), answered()), gemini={"contents[0].role": "user"}),
    case("an empty turn of the model", "openai-chat", chat(ASK, {"role": "assistant", "content": ""}, {"role": "user", "content": "?"}),
         messages=Says("messages[1]"), gemini=Says("messages[1]")),
    case("a search and what it found", "anthropic-messages", messages(ASK, says(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rain"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
            {"type": "web_search_result", "url": "https://a.test", "title": "A", "encrypted_content": "x"}]}, SEEN), tells(GO)),
         chat=({"messages[1].content[0].text": f"{SEARCHED}\n\n", "messages[1].content[1].text": "Seen."}, Says("encrypted_content"), Says("parts[0].<server_tool_use>")),
         responses={"input[1].content": f"{SEARCHED}\n\n"}, gemini={"contents[1].parts[0].text": f"{SEARCHED}\n\n"},
         ollama={"messages[1].content": f"{SEARCHED}\n\nSeen."},
         messages={"messages[1].content[1].content[0].encrypted_content": "x"}),
    case("two searches at once", "anthropic-messages", messages(ASK, says(
        *({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": id}} for id in ("s1", "s2")),
        *({"type": "web_search_tool_result", "tool_use_id": id, "content": {"type": "web_search_tool_result_error", "error_code": "e_" + id}} for id in ("s1", "s2"))),
        tells(GO)), gemini={f"contents[1].parts[{place}].text": f"The tool web_search was used.\nquery: {id}\nIt returned:\nerror_code: e_{id}{end}" for place, id, end in ((0, "s1", "\n\n"), (1, "s2", ""))}),
    case("thinking beside a search", "anthropic-messages", messages(ASK, says(
        SEEN, {**THOUGHT, "thinking": "Hm, rain."}, {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "rain"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "https://a.test", "title": "A"}]}),
        tells(GO)), gemini=({"contents[1].parts[1].text": f"\n\n{SEARCHED}"}, Says("messages[1].parts[1]")), ollama={"messages[1].thinking": GONE}),
    case("a search whose result is missing", "anthropic-messages", messages(ASK, says(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rain"}}, SEEN), tells(GO)),
         chat=({"messages[1].content": "Seen."}, Says("messages[1].parts[0].<server_tool_use>"))),
    case("a fetched file", "anthropic-messages", messages(ASK, says(
        {"type": "web_fetch_tool_result", "tool_use_id": "x", "content": {"type": "web_fetch_result", "url": "https://a.test", "content": {
            "type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}}}), tells(GO)),
         chat=({"messages[1].content": "The tool web_fetch was used.\nIt returned:\nurl: https://a.test\nmedia_type: application/pdf"}, Says("source.data"))),
    case("a search without what it found", "openai-responses", responses(
        {"role": "user", "content": "x"}, {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rain"}},
        {"role": "user", "content": "y"}), chat=({"messages[1].content": "The tool web_search was used.\nquery: rain"}, Says("messages[1].parts[0].<web_search_call>"))),
    case("code whose output is not told", "openai-responses", responses(
        {"role": "user", "content": "x"}, {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "container_id": "cntr_1", "code": "print(1)", "outputs": None},
        {"role": "user", "content": "y"}), messages={"messages[1].content": "The tool code_interpreter was used.\ncode: print(1)"}),
    case("an image that was made", "openai-responses", responses(
        {"role": "user", "content": "x"}, {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PIXEL}, {"role": "user", "content": "y"}),
         chat=({"messages[1].content": "y"}, Says("image_generation_call"))),
    case("a click that the client made", "openai-responses", responses(
        {"role": "user", "content": "x"}, {"type": "computer_call", "id": "cu_1", "call_id": "call_1", "status": "completed", "pending_safety_checks": [], "action": {"type": "wait"}},
        {"role": "user", "content": "y"}), chat=({"messages[1].content": "y"}, Says("computer_call"))),
    *(case("a result that names another tool than its call", client, body, gemini=({"contents[2].parts[0].functionResponse.name": "look"}, Says("name")))
      for client, body in (("openai-chat", chat(ASK, called(), {**answered(), "name": "other"})),
                           ("ollama-chat", ollama(ASK, called(), {**answered(), "tool_name": "other"})))),
    case("a call of a server that is not asked any more", "openai-responses", responses(
        {"role": "user", "content": "x"}, {"type": "mcp_call", "id": "mcp_1", "server_label": "docs", "name": "find", "arguments": "{}", "output": "found", "status": "completed"},
        {"role": "user", "content": "y"}), messages={"messages[1].content": "The tool find of docs was used.\narguments: {}\nIt returned:\noutput: found"}),
    case("code and its output", "openai-responses", responses(
        {"role": "user", "content": "x"}, {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "container_id": "cntr_1",
                                           "code": "print(1)", "outputs": [{"type": "logs", "logs": "1\n"}]}, {"role": "user", "content": "y"}),
         ollama=({"messages[1].content": "The tool code_interpreter was used.\ncode: print(1)\nIt returned:\nlogs: 1"}, Says("container_id"))),
    case("code of Gemini's and its output", "gemini-generate", gemini(
        {"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "print(1)"}},
                                    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}]}, {"role": "user", "parts": [{"text": "y"}]}),
         messages={"messages[1].content": "The tool code_execution was used.\nlanguage: PYTHON\ncode: print(1)\nIt returned:\noutcome: OUTCOME_OK\noutput: 1"},
         gemini={"contents[1].parts[1].codeExecutionResult.output": "1\n"}),
    case("codes of Gemini's whose outputs stand behind both", "gemini-generate", gemini(
        {"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": [*({"executableCode": {"language": "PYTHON", "code": f"print({n})"}} for n in (1, 2)),
                                    *({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": f"{n}"}} for n in (1, 2))]},
        {"role": "user", "parts": [{"text": "y"}]}),
         messages=({f"messages[1].content[{place}].text": f"The tool code_execution was used.\nIt returned:\noutcome: OUTCOME_OK\noutput: {place + 1}{end}"
                    for place, end in ((0, "\n\n"), (1, ""))}, Says("parts[0].<executableCode>"), Says("parts[1].<executableCode>"))),
    case("what an agent tells another", "openai-responses", responses(
        {"role": "user", "content": "x"}, {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"type": "agent_message", "id": "amsg_1", "author": "lead", "recipient": "helper", "content": [
            {"type": "input_text", "text": "Payload:"}, {"type": "encrypted_content", "encrypted_content": "List the files, please."}]}),
         responses={"input[3].author": "lead", "input[3].role": GONE, "input[3].content[1].encrypted_content": "List the files, please.", "input[3].type": "agent_message"},
         chat=({"messages[3].role": "user", "messages[3].content[1].text": "List the files, please."}, Says("messages[3].agent_message.author")),
         messages={"messages[2].content[2].text": "List the files, please."}, gemini={"contents[3].parts[1].text": "List the files, please."},
         ollama={"messages[3].content": "Payload:\nList the files, please."},
         **{"xai/grok-4": ({"input[3].role": "user", "input[3].type": "message", "input[3].content[1].text": "List the files, please."}, Says("messages[3]"))}),
    case("what an agent tells another under seal", "openai-responses", responses(
        {"role": "user", "content": "x"}, {"type": "agent_message", "author": "lead", "recipient": "helper", "content": [
            {"type": "input_text", "text": "Payload:"}, {"type": "encrypted_content", "encrypted_content": "gAAAAA" * 20}]}),
         responses={"input[1].content[0].text": "Payload:", "input[1].content[1].encrypted_content": "gAAAAA" * 20},
         **dict.fromkeys(("chat", "messages", "gemini", "ollama"), Refused("<encrypted_content>")), **{"xai/grok-4": Refused("only OpenAI")}),
    case("what an agent told another under seal", "openai-responses", responses(
        {"role": "user", "content": "x"}, {"type": "agent_message", "author": "lead", "recipient": "helper", "content": [
            {"type": "input_text", "text": "Payload:"}, {"type": "encrypted_content", "encrypted_content": "gAAAAA" * 20}]},
        {"role": "assistant", "content": "Done."}, {"role": "user", "content": "y"}),
         **{name: ({place: "Done."}, Says("<encrypted_content>")) for name, place in (("chat", "messages[1].content"), ("messages", "messages[1].content"),
                                                                                       ("gemini", "contents[1].parts[0].text"), ("ollama", "messages[1].content"))},
         **{"xai/grok-4": ({"input[1].role": "assistant"}, Says("only OpenAI"))}),
    *(case("a file that its vendor keeps", client, body, **{one: {kept[one][0]: kept[one][1]} if one in kept else Says("keeps it")
                                                              for one in ("chat", "responses", "messages", "gemini", "ollama")})
      for client, body, kept in STORED),
    *(case("a question of a file alone that its vendor keeps", client, body, messages=Refused("keeps it"), gemini=Refused("keeps it"), ollama=Refused("keeps it"))
      for client, body in (("openai-chat", chat(tells({"type": "file", "file": {"file_id": "file-a1"}}))),
                           ("openai-responses", responses(tells({"type": "input_file", "file_id": "file-a1"}))))),
    case("a file that its vendor keeps in a result", "anthropic-messages", messages(
        ASK, says(used()), tells(result(content=[SEEN, {"type": "document", "source": {"type": "file", "file_id": "file_011"}}]))),
         chat=({"messages[2].content": "Seen.", "messages[3]": GONE}, Says("keeps it")), gemini=Says("keeps it"),
         messages={"messages[2].content[0].content[1].source.file_id": "file_011"}),
    case("an empty turn of the user", "openai-chat", chat({"role": "user", "content": ""}), chat={"messages[0].content": ""},
         responses={"input[0].content": ""}, messages=Refused("messages[0]"), gemini=Refused("messages[0]")),
    case("a stored prompt", "openai-responses", {"model": "m", "prompt": {"id": "pmpt_1"}},
         **dict.fromkeys(("chat", "messages", "gemini", "ollama"), Refused("prompt.id"))),
    case("a sound alone", "openai-chat", chat(tells(GO), {"role": "assistant", "content": "Well?"}, tells(SOUND)),
         gemini={"contents[2].parts[0].inlineData.mimeType": "audio/wav"}, messages=Refused("audio"), ollama=Refused("images")),
    case("a sound behind a result", "openai-chat", chat(ASK, called(), answered(), tells(SOUND), tools=[function()]),
         messages=({"messages[2].content[0].type": "tool_result", "messages[3]": GONE}, Says("audio")), ollama=({"messages[2].content": "rain"}, Says("images"))),
    case("a sound alone behind other losses", "openai-chat", chat(tells(SOUND, GO), {"role": "assistant", "content": "Well?", "refusal": "No."}, tells(SOUND)),
         messages=Refused("asked (messages[2].parts[0]: audio"), ollama=Refused("asked (messages[2].parts[0]: only")),
    case("a sound behind words", "openai-chat", chat(tells(GO), tells(SOUND)), messages=Says("audio"), ollama=Says("images")),
    case("thinking alone", "anthropic-messages", messages(says({"type": "thinking", "thinking": "Hm.", "signature": "x"})),
         each=Refused("messages[0]")),
    case("no content and no calls", "openai-chat", chat(ASK, {"role": "assistant", "content": None, "tool_calls": []}, ASK), each={}),
    case("white space", "openai-chat", chat(ASK, {"role": "assistant", "content": "\n\n", "tool_calls": called()["tool_calls"]}, answered()),
         messages={"messages[1].content[0].type": "tool_use"}),
    case("a result with white space", "anthropic-messages", messages(ASK, says(used()), tells(result(content=""))),
         chat={"messages[2].content": ""}, responses={"input[2].output": ""}, gemini={"contents[2].parts[0].functionResponse.name": "look"}),
    case("a failed result", "anthropic-messages", messages(ASK, says(used()), tells(result(is_error=True))),
         chat={"messages[2].content": "Error: rain"}, responses={"input[2].output": "Error: rain"},
         gemini={"contents[2].parts[0].functionResponse.response": {"error": "rain"}},
         ollama={"messages[2].content": "Error: rain"}),
    case("a failed result of Gemini", "gemini-generate", gemini(
        {"role": "user", "parts": [{"text": "x"}]}, {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"error": "no"}}}]}),
         messages={"messages[2].content[0].is_error": True}),
    case("an image in a result", "anthropic-messages", messages(ASK, says(used()), tells(result(content=[SEEN, IMAGE]))),
         chat={"messages[2].content": "Seen.", "messages[3].content[1].image_url.url": PNG_URL},
         responses={"input[2].output[1].image_url": PNG_URL}, ollama={"messages[3].images": [PIXEL]},
         gemini={"contents[2].parts[0].functionResponse.parts[0].inlineData.data": PIXEL}),
    case("an image alone in a result", "anthropic-messages", messages(ASK, says(used()), tells(result(content=[IMAGE]))),
         chat={"messages[3].content[1].image_url.url": PNG_URL}, ollama={"messages[3].images": [PIXEL]}),
    case("an image in one of two results", "anthropic-messages", messages(
        ASK, says(used(), used("toolu_2")), tells(result(content=[IMAGE]), result("toolu_2"), GO)),
         chat={"messages[3].role": "tool", "messages[4].role": "user"}, ollama={"messages[3].role": "tool"}),
    case("an image in a result of Chat", "openai-chat", chat(ASK, called(), answered(content=[
        {"type": "text", "text": "Seen."}, {"type": "image_url", "image_url": {"url": PNG_URL}}])),
         messages={"messages[2].content[0].content[1].source.data": PIXEL}, responses={"input[2].output[1].image_url": PNG_URL},
         gemini={"contents[2].parts[0].functionResponse.parts[0].inlineData.mimeType": "image/png"}),
    case("a document", "anthropic-messages", messages(tells(DOCUMENT, GO)),
         chat={"messages[0].content[0].file.file_data": f"data:application/pdf;base64,{PDF}"},
         responses={"input[0].content[0].file_data": f"data:application/pdf;base64,{PDF}"},
         gemini={"contents[0].parts[0].inlineData.mimeType": "application/pdf"}, ollama=Says("document")),
    case("a document in a result", "anthropic-messages", messages(ASK, says(used()), tells(result(content=[SEEN, DOCUMENT]))),
         responses={"input[2].output[1].type": "input_file"}, chat={"messages[3].content[1].type": "file"},
         gemini={"contents[2].parts[0].functionResponse.parts[0].inlineData.data": PDF}, ollama=Says("document")),
    case("a file", "openai-chat", chat(tells({"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}}, GO)),
         messages={"messages[0].content[0].source.data": PDF}, responses={"input[0].content[0].filename": "a.pdf"},
         gemini={"contents[0].parts[0].inlineData.data": PDF}),
    case("an image by its address", "openai-responses", responses(
        {"role": "user", "content": [{"type": "input_image", "image_url": "https://example.test/a.png"}, {"type": "input_text", "text": "?"}]}),
         chat={"messages[0].content[0].image_url.url": "https://example.test/a.png"},
         messages={"messages[0].content[0].source": {"type": "url", "url": "https://example.test/a.png"}}),
    *(case("what another role says", "openai-chat", chat(
        {"role": role, "content": "Go on.", **more, "tool_calls": called()["tool_calls"]}, {"role": "user", "content": "x"}, tools=[function()]),
        each=Says("messages[0].tool_calls")) for role in ("user", "system") for more in ({}, {"reasoning_content": "", "audio": None})),
    *(case("thinking that is no text, and other thinking", "openai-chat", chat({"role": "assistant", "content": "So.", **more}, tells(GO)),
           each=Says("messages[0].thinking")) for more in ({"thinking": {"text": "Hm."}}, {"reasoning_content": "Hm.", "thinking": "Oh."})),
    case("an answer with a result's id", "openai-chat", chat({"role": "assistant", "content": "So.", "tool_call_id": "call_1"}, tells(GO)),
         each=Says("messages[0].tool_call_id")),
    case("a result in the answer", "anthropic-messages", messages(tells(GO), says(used(), result()), tells(GO), tools=[tool()]),
         chat={"messages[2].content": "rain", "messages[3].role": "user"},
         responses={"input[2].output": "rain", "input[3].role": "user"},
         messages={"messages[1].content[1]": GONE, "messages[2].content[0].content": "rain"},
         gemini={"contents[2].parts[0].functionResponse.response": {"result": "rain"}}, ollama={"messages[2].content": "rain"}),
    case("a call of the user's", "anthropic-messages", messages(tells(used(), GO), tools=[tool()]),
         each=Says("messages[0].parts[0]")),
    case("a call of the user's", "gemini-generate",
         gemini({"role": "user", "parts": [{"text": "Go on."}, {"functionCall": {"name": "look", "args": {}}}]}),
         each=Says("messages[0].parts[1]")),
    case("a record that looks like a part", "openai-chat", chat(called(), answered(content=[{"type": "Feature", "x": 1}]), tools=[function()]),
         chat={"messages[1].content": FEATURE, "messages[2]": GONE}, responses={"input[1].output": FEATURE}, messages={"messages[1].content[0].content": FEATURE},
         gemini={"contents[2].parts[0].functionResponse.response": {"result": FEATURE}}, ollama={"messages[1].content": FEATURE}),
    case("a record that looks like a block", "anthropic-messages", messages(tells(GO), says(used()), tells(result(content=[{"type": "Feature", "x": 1}])), tools=[tool()]),
         chat={"messages[2].content": FEATURE}, responses={"input[2].output": FEATURE}, gemini=Says("Feature"), ollama={"messages[2].content": FEATURE}),
    case("a file of no form", "openai-chat", chat(called(), answered(content=[{"type": "image", "data": PIXEL * 20}]), tools=[function()]),
         responses=Says("image"), messages=Says("image"), gemini=Says("image"), ollama=Says("image")),
    case("a field beside a file", "openai-chat", chat(tells({"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}, "new": 1}, GO)), each=Says("content[0].new")),
    case("an answer that was spoken", "openai-chat", chat(tells(GO), {"role": "assistant", "audio": {"id": "audio_1", "expires_at": 9}}, tells(GO)),
         chat=({"messages[1].audio": {"id": "audio_1"}, "messages[1].content": None}, Says("expires_at")),
         messages=Says("audio"), responses=Says("audio"), gemini=Says("media"), ollama=Says("audio")),
    case("sound", "openai-chat", chat(tells(SOUND, GO)),
         gemini={"contents[0].parts[0].inlineData.mimeType": "audio/wav"}, messages=Says("audio"), ollama=Says("audio")),
    case("a text file", "anthropic-messages", messages(tells(
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "abc"}}, GO)),
         gemini={"contents[0].parts[0].inlineData.mimeType": "text/plain"}, chat={"messages[0].content[0].type": "file"}),
    case("a search result", "anthropic-messages", messages(tells(
        {"type": "search_result", "source": "https://example.test", "title": "T", "content": [{"type": "text", "text": "Found."}]}, GO)),
         chat=Says("search_result"), ollama=Says("search_result")),
    case("thinking of another vendor", "anthropic-messages", messages(
        ASK, says(THOUGHT, used()), tells(result()), thinking={"type": "enabled", "budget_tokens": 2000}, max_tokens=4000),
         chat=({"messages[1].reasoning_content": GONE}, Says("messages[1]")), responses=Says("messages[1]"),
         gemini={"generationConfig.thinkingConfig.thinkingBudget": 2000}, ollama={"think": True}),
    case("thinking that was not kept", "openai-chat", chat(ASK, called(), answered(), tools=[function()], reasoning_effort="high"),
         deepseek={"messages[1].reasoning_content": " "}, moonshot={"messages[1].reasoning_content": " "},
         messages={"thinking.type": "adaptive", "output_config.effort": "high"}),
    case("thinking that was not kept, and a budget", "openai-chat", chat(
        ASK, called(), answered(), tools=[function()], reasoning={"max_tokens": 2000}, max_tokens=4000),
         sonnet=({"thinking": GONE}, Says("reasoning")), messages={"thinking.type": "adaptive"}),
    case("thinking that is off", "openai-chat", chat(ASK, called(), answered(), thinking={"type": "disabled"}),
         deepseek={"messages[1].reasoning_content": GONE, "thinking.type": "disabled"}),
    case("thinking that was kept", "openai-chat", chat(ASK, {**called(), "reasoning_content": "Hm."}, answered()),
         deepseek={"messages[1].reasoning_content": "Hm."}, moonshot={"messages[1].reasoning_content": "Hm."},
         messages=Says("messages[1]"), groq={"messages[1].reasoning_content": GONE}),
    case("a call with no seal", "openai-chat", chat(ASK, TWO, answered(), answered("call_2")),
         gemini={"contents[1].parts[0].thoughtSignature": "skip_thought_signature_validator", "contents[1].parts[1].thoughtSignature": GONE},
         gemini2={"contents[1].parts[0].thoughtSignature": GONE}),
    case("sealed reasoning", "openai-responses", responses(
        {"role": "user", "content": "x"}, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "seal"},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "y"}),
         chat=Says("messages[1]"), messages=({"messages[1].content[0].type": "tool_use"}, Says("messages[1]"))),
    case("an item behind an item", "openai-responses", responses(
        {"role": "user", "content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Well."}]},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "y"}),
         chat={"messages[1].content": "Well.", "messages[1].tool_calls[0].id": "call_1"},
         gemini={"contents[1].parts[1].functionCall.name": "look"}),
    case("outputs out of order", "openai-responses", responses(
        {"role": "user", "content": "x"},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "1"},
        {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": "{}"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hm."}]},
        {"type": "function_call_output", "call_id": "call_2", "output": "2"}), each={}),
    case("a result that comes late", "openai-chat", chat(ASK, called(), {"role": "user", "content": "Wait."}, answered()), each=Says("messages[1]")),
    case("a call without its result", "openai-chat", chat(ASK, called(), {"role": "user", "content": "Never mind."}), each=Says("messages[1]")),
    case("one of two results", "openai-chat", chat(ASK, TWO, answered()), each=Says("messages[1]")),
    case("a result without its call", "openai-chat", chat(ASK, answered("call_9"), {"role": "user", "content": "?"}), each=Says("messages[1]")),
    case("two results of one call", "openai-chat", chat(ASK, called(), answered(), answered(content="sun")), each=Says("messages[3]")),
    case("one id for two calls", "openai-chat", chat(ASK, called(), answered(), called(), answered(content="sun")),
         messages={"messages[3].content[0].id": "call_1_2", "messages[4].content[0].tool_use_id": "call_1_2"}),
    case("one id for two calls of a turn", "openai-chat", chat(ASK, TWINS, answered("x", "1"), answered("x", "2"), answered("x_2", "3")),
         each=({}, Says("messages[1]")), messages={"messages[2].content[0].content": "1", "messages[2].content[1].content": "2"},
         chat={"messages[1].tool_calls[1].id": "x_3", "messages[3].tool_call_id": "x_3", "messages[4].tool_call_id": "x_2"},
         ollama={"messages[1].tool_calls[1].id": "x_3", "messages[3].tool_call_id": "x_3"}),
    case("a long id", "openai-chat", chat(ASK, called(UUID), answered(UUID)), responses={}, messages=Says(".id") if len(UUID) > 64 else {},
         mistral=Says(".id")),
    case("an odd id", "openai-chat", chat(ASK, called("functions.look:0"), answered("functions.look:0")), messages=Says(".id"),
         responses=Says(".id"), gemini={"contents[1].parts[0].functionCall.id": "functions.look:0"}),
    case("no id", "ollama-chat", ollama(ASK, {"role": "assistant", "content": "", "tool_calls": [
        {"function": {"name": "look", "arguments": {}}}]}, {"role": "tool", "content": "rain"}), each={}),
    case("no id of Gemini", "gemini-generate", gemini(
        {"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"a": 1}}}, {"functionCall": {"name": "look", "args": {"a": 2}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "1"}}},
                                   {"functionResponse": {"name": "look", "response": {"result": "2"}}}]}),
         chat={"messages[2].content": "1", "messages[3].content": "2"}, messages={"messages[2].content[1].content": "2"}),
    case("words behind a result", "anthropic-messages", messages(ASK, says(used()), tells(result(), GO)),
         mistral=({"messages[3].role": "assistant", "messages[4].role": "user"}, Says("messages[3]")),
         chat={"messages[3]": {"role": "user", "content": "Go on."}}, gemini={"contents[3].parts[0].text": "Go on."}),
    case("words before a result", "anthropic-messages", messages(ASK, says(used()), tells(GO, result())), each={}),
    case("words between calls", "anthropic-messages", messages(ASK, says(used(), SEEN, used("toolu_2")), tells(result(), result("toolu_2"))),
         chat=({"messages[1].content": "Seen."}, Says("messages[1].parts[1]")), gemini={"contents[1].parts[1].text": "Seen."}),
    case("a beginning of the answer", "anthropic-messages", messages(ASK, {"role": "assistant", "content": "It is"}),
         chat={"messages[1]": {"role": "assistant", "content": "It is"}}, gemini={"contents[1].role": "model"}),
    case("a beginning with a blank", "openai-chat", chat(ASK, {"role": "assistant", "content": "It is "}),
         messages={"messages[1].content": "It is"}),
    case("a refusal", "openai-chat", chat(ASK, {"role": "assistant", "content": None, "refusal": "No."}, ASK),
         messages={"messages[1].content": "No."}, gemini={"contents[1].parts[0].text": "No."}, responses={}),
    case("two refusals in a row", "openai-responses", responses(*(
        {"role": "assistant", "content": [{"type": "refusal", "refusal": text}]} for text in ("No.", "Never.")), {"role": "user", "content": "Why?"}),
         chat={"messages[0].refusal": "No.\nNever."}),
    case("names of two users", "openai-chat", chat({"role": "user", "name": "Ann", "content": "x"}, {"role": "user", "name": "Bob", "content": "y"}),
         chat={"messages[1].name": "Bob"}, vllm=({"messages[0]": {"role": "user", "content": "x\n\ny"}}, Says("messages[1].name"))),
    case("one name twice", "openai-chat", chat({"role": "user", "name": "Ann", "content": "x"}, {"role": "user", "name": "Ann", "content": "y"}),
         vllm={"messages[0]": {"role": "user", "name": "Ann", "content": "x\n\ny"}}),
    case("a beginning with its mark", "openai-chat", chat(
        ASK, {"role": "assistant", "content": "One."}, {"role": "assistant", "content": "Two", "prefix": True}),
         vllm={"messages[1]": {"role": "assistant", "content": "One.\n\nTwo", "prefix": True}}),
    case("three turns with media", "openai-chat", chat(
        ASK, tells({"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": PNG_URL}}, GO), {"role": "user", "content": "b"}),
         vllm={"messages[0].content[0].text": "Weather in Rome?\n\na", "messages[0].content[1].image_url.url": PNG_URL,
               "messages[0].content[2].text": "Go on.\n\nb", "messages[1]": GONE}),
    case("texts of one message", "anthropic-messages", messages(
        tells(SEEN, GO), says(used()), tells(result(content=[SEEN, GO])), says(used("toolu_2")),
        tells(result("toolu_2", content=[SEEN, GO], is_error=True)), system=[SEEN, GO]),
         ollama={"messages[0].content": "Seen.\nGo on.", "messages[1].content": "Seen.\nGo on.", "messages[3].content": "Seen.\nGo on.",
                 "messages[5].content": "Error: Seen.\nGo on."},
         chat={"messages[3].content[1].text": "Go on.", "messages[5].content": "Error: Seen.\nGo on."},
         gemini={"contents[2].parts[0].functionResponse.response": {"result": "Seen.\nGo on."}}),
    case("a seal of Gemini", "gemini-generate", gemini(*SEALED), gemini={"contents[1].parts[0].thoughtSignature": "c2VhbA=="},
         groq=({"messages[1].tool_calls[0].extra_content": GONE}, Says("messages[1].parts[0].signature")), mistral=Says("signature")),
    case("a seal of Gemini in Chat", "openai-chat", chat(ASK, {**called(), "tool_calls": [
        {**called()["tool_calls"][0], "extra_content": {"google": {"thought_signature": "c2VhbA=="}}}]}, answered()),
         gemini={"contents[1].parts[0].thoughtSignature": "c2VhbA=="},
         chat={"messages[1].tool_calls[0].extra_content.google.thought_signature": "c2VhbA=="}),
    case("names of users", "openai-chat", chat({"role": "user", "name": "Ann", "content": "x"}), messages=Says("name"), ollama=Says("name")),
    case("marks in contents", "anthropic-messages", messages(
        tells({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}})),
         responses=Says("cache_control"), openrouter={"messages[0].content[0].cache_control.ttl": "1h"}, ollama=Says("cache_control")),
    case("a result that holds a schema", "anthropic-messages", messages(
        ASK, says(used()), tells(result(content='{"$ref":"#/$defs/A"}'))),
         gemini={"contents[2].parts[0].functionResponse.response": {"result": '{"$ref":"#/$defs/A"}'}}),
    case("half a character", "openai-chat", chat({"role": "user", "content": "a\ud83d \\ud83d \U0001f30d"}),
         chat={"messages[0].content": "a\ufffd \\ud83d \U0001f30d"}, ollama={"messages[0].content": "a\ufffd \\ud83d \U0001f30d"}),
    case("tools found by a search", "anthropic-messages", messages(
        ASK, says(used(name="ToolSearch")), tells(result(content=[{"type": "tool_reference", "tool_name": "look"}])),
        tools=[tool("ToolSearch"), tool(defer_loading=True)]),
         chat={"messages[2].content": "The tool look can be called now.", "tools[1].function.name": "look"}),
]  # fmt: skip
