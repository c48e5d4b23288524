"""PyPI open-webui: its own server with a tool of the workspace, asked as its page asks. It speaks to Ollama."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from pathlib import Path

from recording import QUESTION, finish

with socket.create_server(("127.0.0.1", 0)) as found:
    PORT = found.getsockname()[1]
PAGE = f"http://127.0.0.1:{PORT}"
SECONDS = 240
TOOL = '''
import hashlib

class Tools:
    def record(self, text: str, tags: list[str], count: int) -> str:
        """
        Record a text.
        :param text: what to record.
        :param tags: words to file it under.
        :param count: how many of it there are.
        """
        return "proof " + hashlib.sha256("\\n".join([text, *tags, str(count)]).encode()).hexdigest()
'''
SETTINGS = {
    "WEBUI_AUTH": "False", "WEBUI_SECRET_KEY": "any", "OLLAMA_BASE_URL": os.environ["BASE_URL"],
    "ENABLE_OPENAI_API": "False", "OFFLINE_MODE": "True", "HF_HUB_OFFLINE": "1", "RAG_EMBEDDING_ENGINE": "ollama",
    "BYPASS_EMBEDDING_AND_RETRIEVAL": "True", "ENABLE_VERSION_UPDATE_CHECK": "False", "ANONYMIZED_TELEMETRY": "False",
    "ENABLE_TITLE_GENERATION": "False", "ENABLE_TAGS_GENERATION": "False", "ENABLE_FOLLOW_UP_GENERATION": "False",
    "ENABLE_MEMORIES": "False", "ENABLE_NOTES": "False",
}  # fmt: skip


def ask(path, body=None, token=""):
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(PAGE + path, data, headers), timeout=30) as response:
        return json.loads(response.read())


def wait_for(what):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            found = what()
        except OSError:
            found = None
        if found:
            return found
        time.sleep(0.3)
    raise SystemExit("Open WebUI did not get there")


def main():
    token = wait_for(lambda: ask("/api/v1/auths/signin", {"email": "", "password": ""}))["token"]
    tool = {"id": "recorder", "name": "recorder", "content": TOOL, "meta": {"description": "Records texts"}}
    ask("/api/v1/tools/create", {**tool, "access_grants": []}, token)
    models = wait_for(lambda: ask("/api/models", token=token)["data"])
    model = next(each["id"] for each in models if each["id"].startswith(os.environ["MODEL"]))
    user, answer = str(uuid.uuid4()), str(uuid.uuid4())
    asked = {"id": user, "role": "user", "content": QUESTION, "parentId": None, "childrenIds": [answer]}
    chat = ask("/api/chat/completions", {
        "model": model, "stream": True, "messages": [{"role": "user", "content": QUESTION}], "parent_id": None,
        "user_message": asked, "message_ids": [{"model_id": model, "message_id": answer}], "session_id": "page",
        "tool_ids": ["recorder"], "params": {"function_calling": "native"}, "features": {}, "background_tasks": {},
    }, token)["chat_id"]  # fmt: skip

    def written():
        message = ask(f"/api/v1/chats/{chat}", token=token)["chat"]["history"]["messages"].get(answer) or {}
        if message.get("error"):
            raise SystemExit(json.dumps(message["error"]))
        return message if message.get("done") else None

    finish(wait_for(written)["content"])


folder = Path.cwd() / "open-webui"
folder.mkdir(exist_ok=True)
log = (folder / "log").open("wb")
program = [str(Path(sys.executable).with_name("open-webui")), "serve", "--host", "127.0.0.1", "--port", str(PORT)]
settings = {**os.environ, **SETTINGS, "DATA_DIR": str(folder)}
server = subprocess.Popen(program, env=settings, stdout=log, stderr=log, cwd=folder)
try:
    main()
finally:
    server.kill()
