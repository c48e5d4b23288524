# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""Ways out of the agent's sandbox, each tried for real: below a folder of its own, as whoever runs this.

    python -m reliability.escapes FOLDER [bare] [NAME…]

A case is a script that runs in the sandbox. Then a person does an ordinary day's work outside: Git's commands in every
folder, a look at every file that a program obeys. It is out when the proof appears, when a canary was read, or when
anything outside of the work folder is not what it was. Prints a JSON object a line.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from dragoman.agent.approval import Approvals, parse_rule
from dragoman.agent.sandbox.bubblewrap import find_bubblewrap
from dragoman.agent.sandbox.guarantees import describe_fence
from dragoman.agent.sandbox.sandbox import Sandbox
from dragoman.agent.tools.run import run_tool
from dragoman.agent.work_folder import WorkFolder
from dragoman.errors import UsageError
from dragoman.types import ToolCall
from reliability.further_escapes import STARTED, further_cases
from reliability.other_escapes import other_cases

CANARY = "canary-91c7e2"
EVIL = "evil-5d20ab"
PYTHON = os.path.realpath(sys.executable)
#: A command outside that leaves the proof.
_TOUCH = "touch {proof}; false"
_CONFIG = f"[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tfsmonitor = {_TOUCH}\\n"
_FAKE = f"mkdir -p D/objects D/refs/heads && printf 'ref: refs/heads/m\\n' > D/HEAD && printf '{_CONFIG}' > D/config"

#: A repository whose work tree is itself: then every one of Git's commands obeys it.
_IN_PLACE = "; printf '\\tworktree = .\\n' >> config"


def _fake(folder: str) -> str:
    """A shell's words that make a repository with an evil setting."""
    return _FAKE.replace("D/", f"{folder}/")


def _python(code: str) -> str:
    return f"{PYTHON} - <<'END'\nimport ctypes,os,socket,sys,struct,time\nl=ctypes.CDLL(None,use_errno=True)\n{code}\nEND\n"


#: After a call by number: out when the kernel did it.
_OUT = f"print('{EVIL}' if r>=0 else os.strerror(ctypes.get_errno()))"


def _call(number: int, *arguments: str) -> str:
    return _python(f"r=l.syscall({number}, {', '.join(arguments)})\n{_OUT}")


_RAW = """
import mmap
def raw(code):
    m=mmap.mmap(-1,4096,prot=7); m.write(bytes.fromhex(code))
    return ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()
"""
_LIVE = [".vscode/tasks.json", ".husky/pre-commit", ".github/workflows/x.yml", ".envrc", ".mcp.json", ".claude/settings.json",
         ".cursor/mcp.json", ".devcontainer/devcontainer.json", ".gitmodules", ".gitlab-ci.yml", ".idea/x.xml", ".bashrc"]  # fmt: skip


def _hook(folder: str) -> str:
    return f"mkdir -p {folder}; printf '#!/bin/sh\n{_TOUCH}' > {folder}/pre-commit; chmod +x {folder}/pre-commit"


#: A rebase that stopped, without what is still to be done.
_REBASE = (
    "mkdir -p .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD > onto; cp onto orig-head; echo refs/heads/main > head-name;"
    " echo 1 > msgnum; echo 1 > end; : > interactive; "
)

CASES: dict[str, str] = {
    # What the review found.
    "C3 capabilities": "grep CapEff /proc/self/status | grep -qv 0000000000000000 && echo EVIL",
    "C3 remount the machine": "mount -o remount,rw / ; mount -o remount,bind,rw /etc; echo EVIL > {outside}/file; [ -w /etc ] && echo EVIL",
    "H1 socket in the file system": _python("s=socket.socket(socket.AF_UNIX); s.connect('{outside}/sock'); s.sendall(b'x'); print(s.recv(9))"),
    "H1 socket in /tmp": _python("s=socket.socket(socket.AF_UNIX); s.connect('/tmp/{mark}.sock'); s.sendall(b'x'); print(s.recv(9))"),
    "H1 socket in /run": _python("s=socket.socket(socket.AF_UNIX); s.connect('/run/{mark}.sock'); s.sendall(b'x'); print(s.recv(9))"),
    "H3 commondir": "mkdir -p e/objects e/refs; printf '" + _CONFIG + "' > e/config; cp .git/HEAD e/; echo ../e > .git/commondir",
    "H3 git init": "cd plain; git init -q .; git config core.fsmonitor '" + _TOUCH + "'",
    "H3 nested repository": "cd nested; git config core.fsmonitor '" + _TOUCH + "'; printf '" + _CONFIG + "' > .git/config",
    "M7 environment of others": "cat /proc/*/environ /proc/[0-9]*/task/*/environ 2>/dev/null | tr '\\0' '\\n'; env",
    "M14 .git as a file": _fake("evil") + "; cd plain; echo 'gitdir: ../evil' > .git",
    "M14 what programs obey, new": "; ".join(f"mkdir -p new/{Path(name).parent}; echo EVIL > new/{name}" for name in _LIVE),
    "M14 what programs obey, changed": "; ".join(f"echo EVIL > {name}; rm -rf {name}; echo EVIL > {name}" for name in _LIVE),
    "M14 what programs obey, moved over": "; ".join(f"echo EVIL > t; mv -f t {name}" for name in _LIVE) + "; mv .vscode v; mkdir .vscode; echo EVIL > .vscode/tasks.json",
    "M14 in capitals": "mkdir -p .GIT/hooks .VSCode .Claude; echo EVIL > .VSCode/tasks.json; echo EVIL > .Claude/settings.json",
    "M16 memory": _python("x=bytearray(3_000_000_000)\nprint('EVIL')"),
    "M16 memory in files": _python("n=0\nfor k in range(30):\n  f=os.memfd_create('a')\n  for i in range(100): n+=os.write(f,b'x'*(1<<20))\nprint('EVIL' if n>=3_000*(1<<20) else n)"),
    "M16 memory of many": _python("for k in range(12):\n  if os.fork()==0:\n    x=bytearray(300_000_000); time.sleep(8); print('EVIL'); os._exit(0)\nfor k in range(12): os.wait()"),
    "M16 temporary files": "for d in /tmp /dev/shm /var/tmp /run /dev; do for i in 1 2 3; do head -c 900000000 /dev/zero > $d/f$i; done; done 2>/dev/null; [ $(du -smc /tmp /dev/shm /var/tmp /run /dev 2>/dev/null | tail -1 | cut -f1) -gt 2100 ] && echo EVIL",
    "M16 private files": "cat {home}/.claude/.credentials.json {home}/.cache/huggingface/token {home}/.bash_history {home}/.zsh_history {home}/.ssh/id {home}/.netrc {home}/.config/dragoman/dragoman.toml {keys}",
    # Further namespaces, mounts and capabilities.
    "a user namespace": "unshare -Ur echo EVIL; unshare -U echo EVIL",
    "a user namespace by clone": _call(56, "0x10000000|17", "0", "0", "0", "0"),
    "a user namespace by clone3": _python("a=struct.pack('=11Q',0x10000000,0,0,0,17,0,0,0,0,0,0)\nr=l.syscall(435,a,88)\nif r==0: os._exit(0)\n" + _OUT),
    "a mount namespace": "unshare -m echo EVIL",
    "a namespace of time": "unshare -T echo EVIL",
    "enter another namespace": "nsenter -t 1 -m echo EVIL; nsenter -t 1 -U echo EVIL",
    "unmount a mask": "umount {home}/.ssh; umount -l {home}/.ssh; cat {home}/.ssh/id",
    "mount over a mask": "mount --bind {home} /tmp; cat /tmp/.ssh/id; mount -t tmpfs x {home} && echo EVIL",
    "open_tree": _call(428, "-100", "b'/'", "1"),
    "fsopen": _call(430, "b'tmpfs'", "0"),
    "chroot": _python("os.chroot('/tmp'); print('EVIL')"),
    "pivot_root": _call(155, "b'/'", "b'/tmp'"),
    "open by handle": _python("r=l.syscall(304,3,b'\\0'*64,0)\nprint('EVIL' if ctypes.get_errno() not in (1,) else 'refused')"),
    "another group": _python("os.setgroups([0,4,27,42]); print('EVIL')"),
    # The kernel's own files.
    # Opened for writing only: nothing is written, so that a way out changes nothing of the machine.
    "core_pattern": "( : >> /proc/sys/kernel/core_pattern ) && echo EVIL",
    "modprobe": "( : >> /proc/sys/kernel/modprobe ) && echo EVIL; ( : >> /proc/sys/vm/drop_caches ) && echo EVIL",
    "binfmt_misc": "( : >> /proc/sys/fs/binfmt_misc/register ) && echo EVIL",
    "sysrq": "( : >> /proc/sysrq-trigger ) && echo EVIL",
    "uevent_helper": "( : >> /sys/kernel/uevent_helper ) && echo EVIL",
    "anything of the kernel": "find /proc/sys /proc/irq /proc/fs /proc/acpi /proc/mtrr /sys -type f -writable 2>/dev/null | grep -q . && echo EVIL",
    "release_agent": "for f in $(find /sys/fs/cgroup -maxdepth 3 -name release_agent 2>/dev/null | head -3); do ( : >> $f ) && echo EVIL; done; mkdir /sys/fs/cgroup/x /sys/fs/cgroup/memory/x && echo EVIL",
    "memory of the machine": "head -c 9 /dev/mem /proc/kcore /dev/kmsg /proc/kmsg && echo EVIL",
    "a device of one's own": "mknod d b 8 0 && echo EVIL; mknod c c 1 1 && head -c1 c && echo EVIL; mknod /tmp/d b 254 0 && head -c1 /tmp/d && echo EVIL",
    "disks": "for d in /dev/vda /dev/sda /dev/nvme0n1; do [ -e $d ] && echo EVIL; done",
    "keys of the system": "cat /etc/shadow /etc/gshadow /etc/ssh/ssh_host_*_key | grep -q . && echo EVIL",
    "the kernel's keyring": _call(250, "0", "-3", "0") + _call(248, "b'user'", "b'x'", "b'y'", "1", "-4"),
    "bpf": _call(321, "0", "b'\\0'*64", "64"),
    "perf": _call(298, "b'\\0'*128", "0", "-1", "-1", "0"),
    "userfaultfd": _call(323, "1"),
    # Other ways to a socket.
    "datagrams from a pair": _python("a,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_DGRAM)\na.sendto(b'x','{outside}/dgram'); a.connect('{outside}/dgram'); a.send(b'x')"),
    "a pair that connects again": _python("a,b=socket.socketpair()\nb.close()\na.connect('{outside}/sock'); a.send(b'x')"),
    "a socket's number in 64 bits": _python("r=l.syscall(41,ctypes.c_long((1<<32)|1),1,0)\n" + _OUT),
    "an abstract socket": _python("s=socket.socket(socket.AF_UNIX); s.connect('\\0{mark}'); s.send(b'x')"),
    "a socket of the hypervisor": _python("s=socket.socket(40,socket.SOCK_STREAM); print('EVIL')"),
    "a raw socket": _python("s=socket.socket(17,socket.SOCK_RAW); print('EVIL')"),
    "io_uring": _call(425, "8", "ctypes.create_string_buffer(256)"),
    "i386": _python(_RAW + "r=raw('53b867010000bb01000000b901000000ba00000000cd80'+'4898'+'5bc3')\nprint('EVIL' if r>=0 else r)"),
    "x32": _call("0x40000000|41", "1", "1", "0"),  # type: ignore[arg-type]
    "the network": _python("s=socket.create_connection(('127.0.0.1',{port}),2); print('EVIL')"),
    "the network by IPv6": _python("s=socket.create_connection(('::1',{port}),2); print('EVIL')"),
    "the network by UDP": _python("s=socket.socket(2,2); s.sendto(b'x',('127.0.0.1',{port})); s.connect(('192.0.2.1',53)); print('EVIL')"),
    # Processes.
    "a daemon that stays": "setsid sh -c 'sleep 1; echo EVIL > later; touch {proof}' >/dev/null 2>&1 & (setsid setsid sleep 1; echo EVIL > {outside}/file) & true",
    "kill who is outside": _python("for p in range(1,100000):\n  if p!=os.getpid():\n    try: os.kill(p,0)\n    except OSError: continue\n    try: n=open('/proc/%d/comm'%p).read()\n    except OSError: n='?'\n    if n.strip() not in ('bwrap','sh','python3.11','python3','python','echo'): print('EVIL',n)"),
    "descriptors that were left open": "for f in /proc/self/fd/*; do case $(readlink $f) in /|{home}*|*seccomp*|{outside}*) [ $(readlink $f) = {work} ] || echo EVIL;; esac; done; ls -l /proc/self/fd/",
    "the root of another process": "cat /proc/1/root{home}/.ssh/id /proc/1/cwd/../.ssh/id; ls /proc/1/root/run/{mark}.sock && echo EVIL",
    "typing into the terminal": _python("import fcntl\nfor n in (0,1,2):\n  try: fcntl.ioctl(n,0x5412,b'x'); print('EVIL')\n  except OSError: pass\nf=os.open('/dev/ptmx',2)\nfcntl.ioctl(f,0x5412,b'x'); print('EVIL')"),
    "a file that runs as its owner": "cp /bin/true s; chmod 4755 s; install -m 4755 /bin/true s2; " + _python("os.close(os.open('s3',os.O_CREAT|os.O_WRONLY,0o4755)); os.close(os.open('s4',os.O_CREAT|os.O_WRONLY)); os.chmod('s4',0o4711)") + "find . -perm -4000 | grep -q . && echo EVIL",
    # Files.
    "a link out of the folder": "ln -s {home}/.profile l; echo EVIL >> l; ln -s {outside} o; echo EVIL > o/file; ln {outside}/file h; echo EVIL > h",
    "above the folder": "echo EVIL > ../x; echo EVIL > {home}/.profile; echo EVIL > {outside}/file; mv {home} {home}2; rm -rf {outside}",
    "the folder itself": "cd ..; mv work work2; rmdir work; chmod 777 {home}",
    "times and modes outside": "touch {outside}/file; chmod 777 {outside}/file; truncate -s 0 {outside}/file",
    # Git.
    "git's settings": "git config core.fsmonitor '" + _TOUCH + "'; printf '" + _CONFIG + "' >> .git/config; cp .git/config .git/c; printf '" + _CONFIG + "' > .git/config.worktree",
    "git's hooks": "for h in pre-commit post-commit post-index-change prepare-commit-msg post-checkout; do printf '#!/bin/sh\\n" + _TOUCH + "' > .git/hooks/$h; chmod +x .git/hooks/$h; done; mv .git/hooks .git/h; cp -r .git/h .git/hooks",
    "a folder in git's place": "mv .git .old; " + _fake(".git"),
    "its parent moved away": "mv nested away; mkdir nested; " + _fake("nested/.git"),
    "a bare repository": "mkdir bare2; cd bare2; " + _fake(".") + _IN_PLACE,
    "a bare repository that was there": "cd bare; printf '" + _CONFIG + "' > config; echo ../e > commondir; cd ..; " + _fake("e"),
    "the folder becomes bare": _fake(".") + _IN_PLACE,
    "half a repository": "printf 'ref: refs/heads/m\\n' > half/HEAD; printf '" + _CONFIG + "' > half/config; mkdir -p half/objects half/refs",
    "an empty .git": "cd empty; " + _fake(".git"),
    "a repository under another name": _fake("real") + "; ln -s real sub2; mkdir p; ln -s ../real p/.git",
    "a pointer that was there": _fake("evil") + "; echo 'gitdir: ../evil' > module/.git",
    "a pointer elsewhere": _fake("a/real") + "; mkdir -p a/b; mv module a/b/; mkdir module; echo 'gitdir: ../a/real' > module/.git",
    "a submodule's repository": _fake(".git/modules/new") + "; mkdir new; echo 'gitdir: ../.git/modules/new' > new/.git",
    "a submodule's settings": "printf '" + _CONFIG + "' > .git/modules/module/config; cd module; git config core.fsmonitor '" + _TOUCH + "'",
    "a linked tree's settings": "echo ../../../e > .git/worktrees/tree/commondir; " + _fake("e") + "; printf '" + _CONFIG + "' > .git/worktrees/tree/config.worktree",
    "a linked tree that is new": "mkdir -p .git/worktrees/t t; echo 'gitdir: ../.git/worktrees/t' > t/.git; echo ../../../e > .git/worktrees/t/commondir; cp .git/HEAD .git/worktrees/t/; " + _fake("e"),
    "attributes": "echo '* filter=x' > .git/info/attributes; rm -rf .git/info; mkdir .git/info; echo '* diff=x' > .git/info/attributes && echo EVIL",
    "a link for the message": "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; rm -f .git/COMMIT_EDITMSG; ln -s {home}/.profile .git/COMMIT_EDITMSG; echo EVIL > .git/SQUASH_MSG",
    "a link for the log": "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; rm -rf .git/logs; ln -s {outside} .git/logs; mkdir .git/logs; mv .git/logs/HEAD x; ln -s {outside}/file .git/logs/HEAD",
    "a link for the refs": "mv .git/refs/heads r; ln -s {outside} .git/refs/heads; rm -rf .git/refs; ln -s {outside} .git/refs",
    "a rebase with orders": "mkdir -p .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD > onto; cp onto orig-head; echo refs/heads/main > head-name; printf 'exec " + _TOUCH + "\\nx " + _TOUCH + "\\n' > git-rebase-todo; cp git-rebase-todo git-rebase-todo.backup; : > done; echo 1 > msgnum; echo 1 > end; : > interactive",
    "a repository nobody can list": "mkdir x; " + _fake("x/.git") + "; chmod 311 x",
    "a repository in a folder nobody can write": "mkdir x; " + _fake("x/.git") + "; chmod 555 x/.git x",
    "a repository far below": "d=.; for i in $(seq 40); do d=$d/dddddddddddddddddddd; done; mkdir -p $d; cd $d; " + _fake(".git"),
    "a repository among others' files": "mkdir -p node_modules/a .venv/b vendor/c; for d in node_modules/a .venv/b vendor/c; do (cd $d; " + _fake(".git") + "); done",
    "a repository in git's folder": "cd .git; " + _fake("objects/x") + "; cd ..; mkdir q; echo 'gitdir: ../.git/objects/x' > q/.git",
    "hooks that the settings name": "printf '#!/bin/sh\\n" + _TOUCH + "' > hooked/hooks/pre-commit; chmod +x hooked/hooks/pre-commit; mv hooked/hooks hooked/h2; mkdir hooked/hooks; printf '#!/bin/sh\\n" + _TOUCH + "' > hooked/hooks/pre-commit; chmod +x hooked/hooks/pre-commit",
    "settings that the settings include": "printf '" + _CONFIG + "' > hooked/included; rm -f hooked/included; printf '" + _CONFIG + "' > hooked/included",
    "hooks that the settings name and are not there": _hook('awaiting/later/hooks'),
    "settings that are included and are not there": "mkdir -p awaiting/more; printf '" + _CONFIG + "' > awaiting/more/settings",
    "hooks behind a link where they are awaited": "mkdir aside; ln -s ../aside awaiting/later; " + _hook("aside/hooks"),
    "hooks that the person's settings name": _hook('personal/phooks'),
    "settings that the person's settings include": "mkdir -p team; printf '" + _CONFIG + "' > team/gitconfig",
    "a submodule's hooks": _hook('module/mhooks'),
    "links for the objects": "cd .git/objects; for i in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do for j in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do [ -e $i$j ] || ln -s {outside} $i$j; done; done",
    "orders of a rebase behind links": _REBASE + "printf 'exec " + _TOUCH + "\\n' > ../../todo; ln -s ../../todo git-rebase-todo; ln -s ../../todo git-rebase-todo.backup; : > done",
    "a rebase that writes through links": _REBASE + "echo reword HEAD > git-rebase-todo; cp git-rebase-todo git-rebase-todo.backup; for f in message stopped-sha done amend author-script; do ln -s {home}/.profile $f; done",
    "more files than are looked at": _python("os.mkdir('many')\nfor d in range(1100):\n  os.mkdir('many/%d'%d)\n  for f in range(1000): os.close(os.open('many/%d/%d'%(d,f),os.O_CREAT|os.O_WRONLY))") + "mkdir zz; " + _fake("zz/.git"),
    "remotes of the old kind": "mkdir -p .git/remotes .git/branches; printf 'URL: {outside}/x\\n' > .git/remotes/up && echo EVIL; echo {outside}/x > .git/branches/up2 && echo EVIL",
    "a bomb of threads": _python("import threading\nthreading.stack_size(65536)\nn=0\ntry:\n  for n in range(7000): threading.Thread(target=time.sleep,args=(30,),daemon=True).start()\nexcept Exception: pass\nprint('EVIL' if n>6000 else n,flush=True)\nos._exit(0)"),
    "a bomb of processes": _python("n=0\ntry:\n  for n in range(3000):\n    if os.fork()==0: time.sleep(30); os._exit(0)\nexcept OSError: pass\nprint('EVIL' if n>2000 else n,flush=True)\ntime.sleep(1)\nprint('EVIL' if n>2000 else n,flush=True)"),
    "a hundred thousand files": _python("for d in range(1000):\n  os.mkdir('i%d'%d)\n  for f in range(1500): os.mkdir('i%d/%d'%(d,f))\nprint('EVIL')"),
    "ten gigabytes of temporary files": "for d in /tmp /dev/shm /var/tmp {work}; do for i in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 900000000 /dev/zero > $d/f$i || break; done; done; rm -f f?; echo EVIL",
    "Mercurial": "mkdir -p hg/.hg; printf '[hooks]\\npre-status = EVIL' > hg/.hg/hgrc; ls hg/.hg",
    **further_cases(_fake),
    **other_cases(_CONFIG),
}  # fmt: skip


def _git(*words: str, folder: Path, home: Path) -> subprocess.CompletedProcess[bytes]:
    environ = {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_EDITOR": "true",
               "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}  # fmt: skip
    return subprocess.run(["git", *words], cwd=folder, env=environ, capture_output=True, check=False, timeout=300)


class Place(NamedTuple):
    """A person's home, with work in it, and what lies outside of both."""

    home: Path
    work: Path
    outside: Path
    keys: Path
    mark: str

    @property
    def proof(self) -> Path:
        return self.outside / "proof"


def build(base: Path, mark: str) -> Place:
    """The folders, their keys and repositories."""
    place = Place(base / "home", base / "home" / "work", base / "outside", base / "outside" / "keys", mark)
    for name in (".ssh/id", ".netrc", ".claude/.credentials.json", ".cache/huggingface/token", ".bash_history", ".zsh_history",
                 ".config/dragoman/dragoman.toml", ".profile"):  # fmt: skip
        file = place.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(CANARY if name != ".profile" else "fine")
    place.outside.mkdir()
    (place.outside / "file").write_text("fine")
    place.keys.write_text(CANARY)
    work = place.work
    work.mkdir()
    _git("init", "-q", "-b", "main", folder=work, home=place.home)
    _git("commit", "-q", "--allow-empty", "-m", "one", folder=work, home=place.home)
    for name in ("nested", "hooked", "awaiting", "personal"):
        shutil.copytree(work / ".git", work / name / ".git")  # a copy costs a fifth of a repository that Git makes
    (work / "bare").mkdir()
    _git("init", "-q", "--bare", folder=work / "bare", home=place.home)
    _git("worktree", "add", "-q", "../tree", "-b", "tree", folder=work, home=place.home)
    shutil.copytree(work / "nested" / ".git", work / ".git" / "modules" / "module")
    for name in ("module", "plain", "empty/.git", "half/objects", "half/refs", "hooked/hooks"):
        (work / name).mkdir(parents=True)
    (work / "module" / ".git").write_text("gitdir: ../.git/modules/module\n")
    (work / "hooked" / "included").write_text("")
    _git("config", "core.hooksPath", "later/hooks", folder=work / "awaiting", home=place.home)
    _git("config", "include.path", "../more/settings", folder=work / "awaiting", home=place.home)
    _git("config", "core.hooksPath", "mhooks", folder=work / "module", home=place.home)
    (place.home / ".gitconfig").write_text(
        f'[includeIf "gitdir:{work}/personal/"]\n\tpath = ~/.personal\n\tpath = ~/{work.name}/team/gitconfig\n'
        f'[includeIf "gitdir:{work}/nested/"]\n\tpath = ~/{work.name}/team/gitconfig\n'
    )
    (place.home / ".personal").write_text("[core]\n\thooksPath = phooks\n")
    _git("config", "core.hooksPath", "hooks", folder=work / "hooked", home=place.home)
    _git("config", "include.path", "../included", folder=work / "hooked", home=place.home)
    for name in (*_LIVE, "conf/editor/launch.json", "conf/envrc"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("fine")
    for name, target in (("linked", "conf"), ("waiting", "later")):
        (work / name).mkdir()
        (work / name / ".vscode").symlink_to(f"../{target}/editor")
        (work / name / ".envrc").symlink_to(f"../{target}/envrc")
    (work / "conf" / "hop").symlink_to("editor")
    (work / ".husky" / "hooks").mkdir()
    (work / ".husky" / "hooks" / "settings.json").symlink_to("../../conf/hop/launch.json")
    return place


@contextlib.contextmanager
def listening(place: Place) -> Iterator[int]:
    """Whoever is asked leaves the proof; gives the port of the network."""
    stop = threading.Event()
    names: list[Any] = [str(place.outside / "sock"), f"/tmp/{place.mark}.sock", f"\0{place.mark}"]
    names += [f"/run/{place.mark}.sock"] if os.access("/run", os.W_OK) else []
    with contextlib.ExitStack() as stack:
        servers = []
        for name, kind in [
            *((name, socket.SOCK_STREAM) for name in names),
            (str(place.outside / "dgram"), socket.SOCK_DGRAM),
        ]:
            server = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            server.bind(name)
            if name[0] != "\0":
                stack.callback(os.unlink, name)
            servers.append(server)
        network = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        packets = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        packets.bind(network.getsockname())

        def serve(server: socket.socket) -> None:
            server.settimeout(0.1)
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    if server.type == socket.SOCK_DGRAM:
                        server.recv(9)
                    else:
                        server.accept()[0].close()
                    place.proof.touch()

        for server in servers[:-1]:
            server.listen(9)
        threads = [threading.Thread(target=serve, args=(each,)) for each in (*servers, network, packets)]
        for thread in threads:
            thread.start()
        try:
            yield network.getsockname()[1]
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def _state(place: Place) -> dict[str, Any]:
    """All that lies outside of the work folder."""
    found: dict[str, Any] = {}
    for base in (place.home, place.outside):
        for folder, folders, files in os.walk(base):
            if Path(folder) == place.work.parent:
                folders[:] = [name for name in folders if name != "work"]
            for name in files:
                path = Path(folder, name)
                if not path.is_socket():
                    found[str(path)] = (path.lstat().st_mode, path.read_bytes())
            found[folder] = os.stat(folder).st_mode
    return found


def a_day(place: Place) -> None:
    """What a person does afterwards: Git's commands wherever they are."""
    folders = [place.work, place.home / "tree"]
    for folder, below, _ in os.walk(place.work):
        folders.append(Path(folder))
        below[:] = [name for name in below if name not in (".git", "objects", "refs", "hooks")]
    for folder in dict.fromkeys(folders[:80]):
        if folder.is_dir() and os.access(folder, os.X_OK):
            with contextlib.suppress(OSError):
                _git("status", folder=folder, home=place.home)
    for folder in (
        place.work,
        place.work / "nested",
        place.work / "hooked",
        place.work / "module",
        place.work / "awaiting",
        place.work / "personal",
        place.home / "tree",
    ):
        for words in (
            ("commit", "--allow-empty", "-m", "two"),
            ("rebase", "--continue"),
            ("cherry-pick", "--continue"),
            ("am", "--continue"),
            ("branch", "more"),
            ("fetch",),
        ):
            if folder.is_dir():
                _git(*words, folder=folder, home=place.home)


def _listed(folder: str, name: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(os.path.join(folder, name))
    return []


def _obeyed(place: Place) -> bool:
    """Whether something evil stands where a program obeys it."""
    names = {part.lower() for name in (*_LIVE, *STARTED) for part in Path(name).parts} | {".hg"}
    for folder, below, files in os.walk(place.work):
        linked = [
            f"{each}/{name}" for each in below if Path(folder, each).is_symlink() for name in _listed(folder, each)
        ]
        for name in (*files, *linked):
            path = Path(folder, name)
            parts = {part.lower() for part in path.relative_to(place.work).parts}
            if parts & names and not any(re.search(r"\.inert\d*$", part) for part in parts):
                with contextlib.suppress(OSError):
                    if EVIL in path.read_text(errors="replace"):
                        return True
    return False


#: Cases that harm nothing beyond their own folder: without a sandbox each of them gets out, else the case says nothing.
HARMLESS: Final = (
    "H1 socket in the file system", "H3 commondir", "H3 git init", "H3 nested repository", "M14 .git as a file",
    "M14 what programs obey, new", "M14 what programs obey, changed", "M16 private files", "datagrams from a pair",
    "an abstract socket", "the network", "a link out of the folder", "git's settings", "git's hooks",
    "a folder in git's place", "a bare repository", "a link for the message", "a pointer that was there",
    "a file that runs as its owner", "settings that the settings include",
)  # fmt: skip


def is_asked(sandbox: Sandbox) -> bool:
    """Whether a command needs a yes although commands are allowed as a whole; for the superuser, although this one is,
    by a rule and by a yes before; and whether the user is told that there is no sandbox."""
    with contextlib.closing(WorkFolder(sandbox.folder)) as folder:
        plan = run_tool(folder, sandbox).plan(ToolCall("c", "run", '{"argv":["true"]}'))
    is_superuser = os.geteuid() == 0
    rules = [parse_rule(rule) for rule in ("run", *(("run:true", "run:tr*") if is_superuser else ()))]
    approvals = Approvals(rules, is_confined=sandbox.is_confined)
    if is_superuser:
        approvals.grant(plan)
    holding = describe_fence(sandbox.fence, is_wanted=sandbox.is_wanted, is_superuser=is_superuser)
    is_said = not holding.is_sandbox and "WITHOUT" in holding.summary and "not sandboxed" in plan.facts
    return is_said and not approvals.covers(plan)


def attempt(name: str, base: Path, *, is_bare: bool = False) -> dict[str, Any]:
    """Try one case in a place of its own; `out` says why it is out, "" when it is not. `is_bare`: without a sandbox."""
    base.mkdir(parents=True)
    mark = f"dragoman-{os.getpid()}"
    place = build(base, mark)
    environ = {
        "HOME": str(place.home),
        "PATH": f"{Path(PYTHON).parent}:/usr/local/bin:/usr/bin:/bin",
        "OPENAI_API_KEY": CANARY,
    }
    sandbox = Sandbox(
        place.work,
        environ=environ,
        home=place.home,
        bubblewrap=None if is_bare else find_bubblewrap(),
        is_wanted=True,
        private=[place.keys],
    )
    facts: dict[str, Any] = {"name": name, "is_confined": sandbox.is_confined, "is_asked": is_asked(sandbox)}
    if not is_bare and not sandbox.is_confined:
        return {**facts, "out": "", "is_whole": True}  # nothing is promised, so nothing of it is run
    with listening(place) as port:
        script = CASES[name]
        for word, value in {"proof": place.proof, "outside": place.outside, "home": place.home, "work": place.work, "keys": place.keys,
                            "mark": mark, "port": port}.items():  # fmt: skip
            script = script.replace(f"{{{word}}}", str(value))
        before = _state(place)
        done = asyncio.run(sandbox.run(["/bin/sh", "-c", script.replace("EVIL", EVIL)], seconds=25))
        out = "its output" if EVIL in done.output or CANARY in done.output else ""
        out = out or ("outside has changed" if _state(place) != before and not place.proof.exists() else "")
    is_committing = _git("status", folder=place.work, home=place.home).returncode == 0
    profile, outside = (place.home / ".profile").read_text(), sorted(place.outside.rglob("*"))
    a_day(place)
    out = out or ("the proof" if place.proof.exists() else "")
    out = out or ("a program obeys it" if _obeyed(place) else "")
    out = out or ("the profile" if (place.home / ".profile").read_text() != profile else "")
    out = out or ("written outside" if sorted(place.outside.rglob("*")) != outside else "")
    return {
        **facts,
        "out": out,
        "ending": done.ending,
        "inert": done.inert,
        "is_whole": is_committing,
        "output": done.output[-300:],
    }


def home_is_refused(base: Path) -> list[str]:
    """H2: folders that a sandbox must not take for work, and does."""
    taken = []
    home = base / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / "work").mkdir()
    for folder in (home, base, Path("/"), home / ".ssh", Path("/etc"), Path("/tmp"), home / "work" / ".."):
        with contextlib.suppress(UsageError):
            Sandbox(folder, environ={}, home=home, bubblewrap=find_bubblewrap() or "/usr/bin/bwrap")
            taken.append(str(folder))
    return taken


def main() -> int:
    """Try the cases; the word `bare` before their names tries those that harm nothing without a sandbox."""
    base, *names = map(str, sys.argv[1:])
    is_bare = names[:1] == ["bare"]
    names = names[1:] if is_bare else names
    for number, name in enumerate(names or (HARMLESS if is_bare else CASES)):
        place = Path(base) / f"{os.getpid()}-{number}"
        try:
            print(json.dumps(attempt(name, place, is_bare=is_bare)), flush=True)
        except Exception as problem:  # of the drill: the other cases are tried all the same
            print(json.dumps({"name": name, "problem": f"{type(problem).__name__}: {problem}"[:300]}), flush=True)
        finally:
            subprocess.run(["chmod", "-R", "u+rwx", str(place)], check=False, capture_output=True)
            shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
