"""The sandbox of a command, built with bubblewrap: what the command sees and may write, and what this machine supports.

The machine is read-only. `/tmp`, `/var/tmp`, `/run` and `/dev/shm` are private and bounded. The work folder is writable
except for files that programs obey (`standing`). Places of keys are empty; these masks are mounted last, so that
nothing undoes them. Reference: bwrap(1).
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.agent.sandbox.guarded_paths import Mount
from dragoman.agent.sandbox.syscall_filter import make_filter
from dragoman.errors import UsageError

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Bytes of each folder that is the command's own.
_SCRATCH: Final = {"/tmp": 1024**3, "/var/tmp": 256 * 1024**2, "/run": 16 * 1024**2, "/dev/shm": 512 * 1024**2}
#: Of `/proc`, what the superuser's uid may write without any capability; /proc/sys/kernel/core_pattern names a program.
_KERNELS_OWN: Final = (
    "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/scsi", "/proc/acpi",
    "/proc/driver", "/proc/mtrr", "/proc/asound",
)  # fmt: skip
#: Of `/run`, what programs need that are not there otherwise: names of servers, and a system's programs.
_KEPT_OF_RUN: Final = ("/run/current-system", "/run/opengl-driver", "/run/wrappers")
#: No work folder lies there, or is one of these: what the sandbox hides or the system is made of.
_SYSTEM: Final = frozenset(
    {"/", "/bin", "/boot", "/etc", "/home", "/lib", "/lib64", "/root", "/run", "/sbin", "/tmp", "/usr",
     "/usr/local", "/var", "/var/tmp", "/Users", "/private", "/private/tmp"}
)  # fmt: skip
_NO_FOLDERS_BELOW: Final = ("/proc", "/sys", "/dev")

#: Seconds in which bubblewrap must answer: on a busy machine its start takes some.
_PATIENCE: Final = 20

#: Below the home folder: what a sandboxed command finds empty.
_KEY_PLACES: Final = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".minikube", ".oci", ".terraform.d", ".fly",
    ".databricks", ".snowflake", ".kaggle", ".password-store", ".pki", ".mozilla", ".thunderbird", ".claude",
    ".codex", ".gemini", ".cursor", ".copilot", ".cline", ".aider", ".continue", ".opencode", ".wrangler", ".vercel",
    ".supabase", ".railway", ".electrum", ".bitcoin", ".ethereum", ".config/gcloud", ".config/gh", ".config/hub",
    ".config/glab-cli", ".config/dragoman", ".config/op", ".config/1Password", ".config/Bitwarden",
    ".config/Bitwarden CLI", ".config/KeePass", ".config/keepassxc", ".config/github-copilot", ".config/rclone",
    ".config/sops", ".config/age", ".config/doctl", ".config/heroku", ".config/netlify", ".config/configstore",
    ".config/containers", ".config/hcloud", ".config/linode-cli", ".config/scw", ".config/stripe", ".config/opencode",
    ".config/claude", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
    ".config/vivaldi", ".config/Slack", ".config/discord", ".config/Signal", ".config/evolution",
    ".config/git/credentials", ".config/composer/auth.json", ".config/pip/pip.conf", ".config/nuget",
    ".config/environment.d", ".local/share/keyrings", ".local/share/kwalletd", ".local/share/gh",
    ".local/share/opencode", ".local/share/atuin", ".local/share/fish/fish_history", ".local/share/TelegramDesktop",
    ".local/share/recently-used.xbel", ".local/state/dragoman", ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens", ".huggingface/token", ".netrc", "_netrc", ".pypirc", ".npmrc", ".yarnrc",
    ".yarnrc.yml", ".git-credentials", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
    ".bundle/config", ".composer/auth.json", ".m2/settings.xml", ".m2/settings-security.xml",
    ".gradle/gradle.properties", ".nuget/NuGet/NuGet.Config", ".ivy2/.credentials", ".pip/pip.conf", ".condarc",
    ".pgpass", ".pg_service.conf", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto", ".passwd-s3fs", ".databrickscfg",
    ".terraformrc", ".vault-token", ".claude.json", ".dockercfg", ".smbcredentials", ".msmtprc", ".fetchmailrc",
    ".mbsyncrc", ".offlineimaprc", ".Xauthority", ".ICEauthority", ".rhosts", ".shosts", ".k5login", ".env", ".envrc",
    ".viminfo", ".lesshst", ".wget-hsts", ".history", ".zhistory", ".node_repl_history",
)  # fmt: skip
#: And what is called like this directly in it.
_KEY_ENDS: Final = ("_history", ".pem", ".key", ".p12", ".kdbx", "_token", ".token")
#: Of the system, readable for the superuser, whose own files they are.
_SYSTEM_KEYS: Final = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/ssl/private",
    "/etc/kubernetes", "/etc/docker", "/etc/wireguard", "/etc/openvpn", "/etc/krb5.keytab", "/etc/NetworkManager",
    "/var/lib/kubelet", "/var/lib/docker", "/var/lib/containerd", "/var/lib/rancher", "/var/spool/cron", "/var/mail",
    "/var/backups",
)  # fmt: skip


@final
class Fence(msgspec.Struct, frozen=True):
    """What a sandbox can guarantee here.

    Attributes:
        bubblewrap: its path.
        has_user_namespace: the command has no identity outside, whatever it is inside. Without it this is no sandbox.
        filter: the filter of system calls, None if none can be made for this machine.
        features: options of newer versions that this bubblewrap knows.
    """

    bubblewrap: str
    has_user_namespace: bool
    filter: bytes | None
    features: frozenset[str]


def find_bubblewrap() -> str | None:
    """Return the path of bubblewrap if it works here at all: some systems forbid what it needs."""
    path = shutil.which("bwrap", path=PATH)
    return path if path is not None and probe_fence(path) is not None else None


def probe_fence(bubblewrap: str) -> Fence | None:
    """Return what the sandbox guarantees here, or None if it does not work at all."""
    features = frozenset(name for name in ("--size", "--disable-userns") if name in _said_by(bubblewrap, "--help"))
    made = make_filter(platform.machine()) if os.uname().sysname == "Linux" else None
    for has_user_namespace in (True, False):
        for known in dict.fromkeys((features, features - {"--disable-userns"})):
            fence = Fence(bubblewrap, has_user_namespace, made, known)
            words = [*_beginning(fence, network=False), *_scratch(fence), "--", "/bin/sh", "-c", "echo works"]
            if _said_by(*words) == "works\n":
                return fence
    return None


def _said_by(*words: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, timeout=_PATIENCE, check=False, env={"PATH": PATH}, cwd="/")
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def check_work_folder(folder: Path, home: Path) -> None:
    """Raise UsageError for a folder that is no place to work in: the home folder, any parent of it, a system folder."""
    place, house = os.path.realpath(folder), os.path.realpath(home)
    if Path(house).is_relative_to(place):
        raise UsageError(f"expected a work folder below the home folder, got {place}: keys and settings lie in it;"
                         " make a folder for the work, or name one with --folder")  # fmt: skip
    if place in _SYSTEM or any(Path(place).is_relative_to(each) for each in _NO_FOLDERS_BELOW):
        raise UsageError(f"expected a work folder of your own, got {place}, which is the system's")
    for mask in _masks(Path(house)):
        if Path(place).is_relative_to(mask):
            raise UsageError(f"expected a work folder without keys, got {place}, which lies in {mask}")


def wrap(fence: Fence, argv: Sequence[str], *, folder: Path, home: Path, mounts: Iterable[Mount], inside: Path,
         network: bool, filter_handle: int | None, private: Iterable[Path] = ()) -> list[str]:  # fmt: skip
    """Return the command in its sandbox.

    Args:
        folder: the work folder.
        inside: the folder to run in.
        mounts: paths of the work folder that are mounted on themselves.
        filter_handle: a descriptor that gives the filter of system calls.
        private: further files and folders that are hidden.
    """
    words = [*_beginning(fence, network=network), *_scratch(fence)]
    if network:
        words += _resolver()
    words += ["--bind", str(folder), str(folder)]
    for mount in mounts:
        words += ["--bind" if mount.is_writable else "--ro-bind", mount.place, mount.place]
    hidden = set(_masks(home)) | {os.path.realpath(place) for place in private}
    hidden |= set() if filter_handle is not None else set(_sockets())
    for place in sorted(hidden):
        words += _mask(place, str(folder))
    words += ["--seccomp", str(filter_handle)] if filter_handle is not None else []
    return [*words, "--chdir", str(inside), "--", *argv]


def _beginning(fence: Fence, *, network: bool) -> list[str]:
    words = [fence.bubblewrap, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--unshare-user"] if fence.has_user_namespace else []
    words += ["--disable-userns"] if fence.has_user_namespace and "--disable-userns" in fence.features else []
    words += [] if network else ["--unshare-net"]
    words += ["--cap-drop", "ALL", "--die-with-parent", "--new-session"]
    return [*words, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]


def _scratch(fence: Fence) -> Iterator[str]:
    for place, size in _SCRATCH.items():
        if os.path.islink(place) or not (os.path.isdir(place) or place == "/dev/shm"):
            continue
        yield from ("--size", str(size)) if "--size" in fence.features else ()
        yield from ("--tmpfs", place)
    if os.path.isdir("/var/run") and not os.path.islink("/var/run"):
        yield from ("--tmpfs", "/var/run")
    for place in _KEPT_OF_RUN:
        if os.path.isdir(place):
            yield from ("--ro-bind", os.path.realpath(place), place)
    for place in _KERNELS_OWN:
        if os.path.exists(place):
            yield from ("--ro-bind", place, place)
    yield from ("--remount-ro", "/dev")


def _resolver() -> list[str]:
    """Return the file that names the DNS servers, if it lies in `/run`."""
    place = os.path.realpath("/etc/resolv.conf")
    return ["--ro-bind", place, place] if place.startswith("/run/") and os.path.isfile(place) else []


def _masks(home: Path) -> Iterator[str]:
    """Yield the real paths of everything that is hidden."""
    for name in _KEY_PLACES:
        yield os.path.realpath(home / name)
    for place in _SYSTEM_KEYS:
        yield os.path.realpath(place)
    for folder, begins, ends in ((home, (".", "id_"), _KEY_ENDS), (Path("/etc/ssh"), ("ssh_host_",), ("_key",))):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            if name.startswith(begins) and name.endswith(ends):
                yield os.path.realpath(folder / name)


def _mask(place: str, folder: str) -> list[str]:
    if any(place.startswith(f"{hidden}/") for hidden in _SCRATCH) and not place.startswith(f"{folder}/"):
        return []  # hidden already
    if os.path.isdir(place):
        return ["--tmpfs", place, "--remount-ro", place]
    return ["--ro-bind", "/dev/null", place] if os.path.lexists(place) else []


def _sockets() -> Iterator[str]:
    """Yield the listening sockets in the file system, as the kernel lists them."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        path = line.partition("/")
        place = f"/{path[2]}"
        if path[1] and os.path.exists(place):
            yield os.path.realpath(place)
