"""`read`: read a text file of the work folder by lines."""

from __future__ import annotations

import fnmatch
from typing import Annotated, Final

import msgspec

from dragoman.agent.safe_text import counted
from dragoman.agent.tool_plan import Outcome, Plan, ToolFailed, identity_of
from dragoman.agent.tools.toolbox import Planner, planner_of
from dragoman.agent.work_folder import WorkFolder

_LINES: Final = 2_000
_LINE_LIMIT: Final = 2_000  # characters of one line
#: Names under which keys and passwords are kept: reading them is asked, since what is read goes to the model.
SECRET_NAMES: Final = (
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.pem.*", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
    "*.ppk", "*.asc", "*.gpg", "*.age", "id_rsa*", "id_dsa*", "id_ed25519*", "id_ecdsa*", ".netrc", "_netrc", ".npmrc",
    ".yarnrc.yml", ".pypirc", ".pgpass", ".my.cnf", ".s3cfg", ".boto", ".htpasswd", ".dockercfg", ".dockerconfigjson",
    ".git-credentials", ".vault-token", ".vault_pass*", "credentials", "credentials.*", "*credentials*.json",
    "secrets.*", "secret.*", "*.secret", "*.secrets", "*-secrets.*", "*_secrets.*", "*.tfstate", "*.tfstate.*",
    "*.tfvars", "*.tfvars.json", "kubeconfig*", "*.kubeconfig", "*service-account*.json", "*service_account*.json",
    "*serviceaccount*.json", "client_secret*.json", "firebase-adminsdk*.json", "*-firebase-adminsdk-*.json", "token",
    "token.txt", "*.token", "tokens.json", "wp-config.php", "local.settings.json", "master.key", ".*_history",
)  # fmt: skip
#: Folders of which every file is one.
SECRET_FOLDERS: Final = frozenset({".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".password-store"})

Line = Annotated[int, msgspec.Meta(ge=1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=_LINES)]


def read_tool(folder: WorkFolder) -> Planner:
    """Return the tool for that folder."""

    def read(path: str, first: Line = 1, lines: Count = 400) -> Plan:
        """Read a text file of the work folder.

        Args:
            path: path in the work folder
            first: first line wanted, from 1
            lines: how many lines
        """
        parts = folder.parts(path)

        async def do() -> Outcome:
            return _shown(folder.read(parts), "/".join(parts), first=first, lines=lines)

        shown = f"read {'/'.join(parts) or '.'}"
        return Plan(
            tool="read",
            kind="read",
            subject=parts,
            shown=shown,
            identity=identity_of("read", {"path": parts, "first": first, "lines": lines}),
            do=do,
            asks="unless-ruled" if holds_secrets(parts) else "never",
            is_idempotent=True,
        )

    return planner_of(read)


def holds_secrets(parts: tuple[str, ...]) -> bool:
    """Return whether the names of a file and its folders suggest that it contains keys."""
    words = [part.lower() for part in parts]
    is_named = bool(words) and any(fnmatch.fnmatchcase(words[-1], name) for name in SECRET_NAMES)
    return is_named or not SECRET_FOLDERS.isdisjoint(words[:-1])


def text_of(content: bytes, name: str) -> str:
    """Return a file's content as text, with its line ends.

    Raises:
        ToolFailed: it is not UTF-8.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ToolFailed(f"{name} is no UTF-8 text ({len(content):,} bytes)") from None


def _shown(content: bytes, name: str, *, first: int, lines: int) -> Outcome:
    every = text_of(content, name).split("\n")
    if every[-1] == "":
        every.pop()
    wanted = every[first - 1 : first - 1 + lines]
    if first > len(every) and every:
        raise ToolFailed(f"{name} has {len(every):,} lines; line {first:,} was asked for")
    text = "\n".join(line if len(line) <= _LINE_LIMIT else line[:_LINE_LIMIT] + "… (line cut)" for line in wanted)
    last = first - 1 + len(wanted)
    if last < len(every):
        text += f"\n(lines {first}-{last} of {len(every)})"
    return Outcome(text or "(empty file)", shown=counted(len(wanted), "line"), is_foreign=True)
