"""Programs of several protocols. OpenAI Chat is set up as `dragoman env` says, the others by their own settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from driver import CHAT, GEMINI, MESSAGES, MODEL, RESPONSES, Driver, Place, Start, preset, shell_lines
from plan import Call, Plan, plan_of_commands
from programs import PROMPT

Commands = Callable[[str], dict[str, Any]]


def _pi(api: str, path: str) -> Callable[[Place], Start]:
    def start(place: Place) -> Start:
        environ = preset(place, "pi")
        if api != "openai-completions":
            models = [{"id": MODEL}]
            provider = {"baseUrl": place.url + path, "api": api, "apiKey": "any", "models": models}
            place.write(".pi/agent/models.json", {"providers": {"dragoman": provider}})
        command = [place.program("pi"), "--provider", "dragoman", "--model", MODEL, "-p", PROMPT]
        return Start(command, environ | {"PI_SKIP_VERSION_CHECK": "1"})

    return start


def _pi_drivers() -> list[Driver]:
    modes = [
        ("chat", CHAT, "openai-completions", "/v1"),
        ("responses", RESPONSES, "openai-responses", "/v1"),
        ("anthropic", MESSAGES, "anthropic-messages", ""),
        ("google", GEMINI, "google-generative-ai", "/v1beta"),
    ]
    plan = plan_of_commands("bash", lambda command: {"command": command})
    package = "@earendil-works/pi-coding-agent"
    return [Driver(f"pi-{mode}", "pi", package, speaks, _pi(api, path), plan) for mode, speaks, api, path in modes]


_CONTINUE = """
name: dragoman
version: 0.0.1
schema: v1
models:
  - name: {model}
    provider: {provider}
    model: {model}
    apiBase: {base}
    apiKey: any
    roles: [chat, edit]
    capabilities: [tool_use]
"""


def _continue(provider: str, path: str) -> Callable[[Place], Start]:
    def start(place: Place) -> Start:
        environ = preset(place, "continue")
        if provider != "openai":
            text = _CONTINUE.format(model=MODEL, provider=provider, base=place.url + path)
            place.write(".continue/config.yaml", text)
        if provider == "gemini":
            environ["GOOGLE_GEMINI_BASE_URL"] = place.url
        config = str(place.home / ".continue/config.yaml")
        command = [place.program("cn"), "--config", config, "--auto", "-p", PROMPT]
        return Start(command, environ | {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_ALLOW_ANONYMOUS_TELEMETRY": "0"})

    return start


def _continue_drivers() -> list[Driver]:
    modes = [
        ("chat", CHAT, "openai", "/v1"),
        ("anthropic", MESSAGES, "anthropic", "/v1"),
        ("google", GEMINI, "gemini", "/v1beta"),
        ("ollama", CHAT, "ollama", ""),
    ]
    plan = plan_of_commands("Bash", lambda command: {"command": command})
    return [
        Driver(
            f"continue-{mode}",
            "continue",
            "@continuedev/cli",
            speaks,
            _continue(provider, path),
            plan,
            note="as it does to Ollama" if mode == "ollama" else "",
        )
        for mode, speaks, provider, path in modes
    ]


def _copilot(kind: str, wire: str) -> Callable[[Place], Start]:
    def start(place: Place) -> Start:
        environ = preset(place, "copilot")
        if kind == "anthropic":
            environ |= {"COPILOT_PROVIDER_TYPE": kind, "COPILOT_PROVIDER_BASE_URL": place.url}
        if wire:
            environ["COPILOT_PROVIDER_WIRE_API"] = wire
        return Start([place.program("copilot"), "-p", PROMPT, "--allow-all-tools", "--no-color"], environ)

    return start


def _copilot_drivers() -> list[Driver]:
    modes = [
        ("chat", CHAT, "openai", ""),
        ("responses", RESPONSES, "openai", "responses"),
        ("anthropic", MESSAGES, "anthropic", ""),
    ]
    plan = plan_of_commands("bash", lambda command: {"command": command, "description": "record"})
    return [
        Driver(f"copilot-{mode}", "copilot", "@github/copilot", speaks, _copilot(kind, wire), plan)
        for mode, speaks, kind, wire in modes
    ]


def _qwen_code(kind: str) -> Callable[[Place], Start]:
    def start(place: Place) -> Start:
        if kind == "openai":
            environ = preset(place, "qwen-code")
        elif kind == "anthropic":
            environ = {"ANTHROPIC_BASE_URL": place.url, "ANTHROPIC_API_KEY": "any", "ANTHROPIC_MODEL": MODEL}
        else:
            environ = {"GOOGLE_GEMINI_BASE_URL": place.url, "GEMINI_API_KEY": "any", "GEMINI_MODEL": MODEL}
        command = [place.program("qwen"), "--auth-type", kind, "-m", MODEL, "--yolo", "-p", PROMPT]
        return Start(command, environ | {"QWEN_TELEMETRY_ENABLED": "false"})

    return start


def _qwen_drivers() -> list[Driver]:
    modes = [("chat", CHAT, "openai"), ("anthropic", MESSAGES, "anthropic"), ("google", GEMINI, "gemini")]

    def arguments(command: str) -> dict[str, Any]:
        """It loses the output of a command that ends at once, now and then, on a busy machine."""
        return {"command": f"{command}; sleep 0.5", "is_background": False}

    plan = plan_of_commands("run_shell_command", arguments)
    return [
        Driver(f"qwen-code-{mode}", "qwen-code", "@qwen-code/qwen-code", speaks, _qwen_code(kind), plan)
        for mode, speaks, kind in modes
    ]


def _opencode(package: str, path: str) -> Callable[[Place], Start]:
    def start(place: Place) -> Start:
        preset(place, "opencode")
        settings = (place.home / "opencode.json").read_text(encoding="utf-8")
        settings = settings.replace("@ai-sdk/openai-compatible", package).replace(place.url + "/v1", place.url + path)
        (place.work / "opencode.json").write_text(settings, encoding="utf-8")
        quiet = {
            "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }  # fmt: skip
        return Start([place.program("opencode"), "run", "-m", f"dragoman/{MODEL}"], quiet, words=PROMPT)

    return start


def _opencode_drivers() -> list[Driver]:
    modes = [
        ("chat", CHAT, "@ai-sdk/openai-compatible", "/v1"),
        ("responses", RESPONSES, "@ai-sdk/openai", "/v1"),
        ("anthropic", MESSAGES, "@ai-sdk/anthropic", "/v1"),
        ("google", GEMINI, "@ai-sdk/google", "/v1beta"),
    ]
    plan = plan_of_commands("bash", lambda command: {"command": command, "description": "record"})
    return [
        Driver(f"opencode-{mode}", "opencode", "opencode-ai", speaks, _opencode(package, path), plan, seconds=120)
        for mode, speaks, package, path in modes
    ]


def _cline(place: Place) -> Start:
    sign_in, *_ = shell_lines(place, "cline")
    folder = Path(place.program("cline")).parent
    return Start(["sh", "-c", f"PATH='{folder}':$PATH; {sign_in} >/dev/null && exec cline -y '{PROMPT}'"])


_EDIT = """hello.py
```
<<<<<<< SEARCH
print("hello")
=======
print("naïve 東京")
>>>>>>> REPLACE
```
"""


def _aider(place: Place) -> Start:
    (place.work / "hello.py").write_text('print("hello")\n', encoding="utf-8")
    words = ["--model", f"openai/{MODEL}", "--edit-format", "diff", "--yes-always", "--no-git", "--no-check-update"]
    words += ["--no-show-model-warnings", "--analytics-disable", "--no-pretty", "--map-tokens", "0"]
    return Start([place.program("aider"), *words, "--message", "Greet Tokyo.", "hello.py"], preset(place, "aider"))


def _is_edited(place: Place) -> str:
    seen = (place.work / "hello.py").read_text(encoding="utf-8")
    return "" if seen == 'print("naïve 東京")\n' else f"the edit is not made: {seen[:80]!r}"


DRIVERS = [
    *_opencode_drivers(),
    *_pi_drivers(),
    *_qwen_drivers(),
    Driver(
        "cline", "cline", "cline", CHAT, _cline,
        Plan(
            plan_of_commands("run_commands", lambda command: {"commands": [command]}).steps,
            ending=Call("submit_and_exit", {"summary": "All is recorded and compared.", "verified": True}, ""),
        ),
        seconds=90, prints_text=False,
    ),
    *_continue_drivers(),
    *_copilot_drivers(),
    Driver(
        "aider", "aider", "aider-chat", CHAT, _aider, Plan((), texts=(_EDIT,)),
        note="an edit, no tools",
        prints_text=False, check=_is_edited, repeats=1,
    ),
]  # fmt: skip
