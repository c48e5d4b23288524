# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""Further ways out of the agent's sandbox, tried by `reliability.escapes` beside its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

_PYTHON: Final = os.path.realpath(sys.executable)
_RUNS: Final = "printf '#!/bin/sh\\ntouch {proof}; exit 1\\n'"
#: Two branches that both have changed, so that a rebase and a pick make a merge of them.
_BRANCHES: Final = (
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; cd nested;"
    " echo 1 > one; git add one; git commit -qm one; git checkout -qb side HEAD~1; echo 2 > two; git add two; git commit -qm two;"
    " echo 3 > three; git add three; git commit -qm three;"
    f" mkdir -p git-merge-x; {_RUNS} > git-merge-x/y; chmod +x git-merge-x/y;"
)
#: What programs beside Git obey in the folder where they are started, or an editor in the one that it opens.
STARTED: Final = (
    ".irbrc", ".pryrc", ".iex.exs", ".Rprofile", ".ghci", ".ocamlinit", ".octaverc", ".erlang", ".perldb", ".lvimrc",
    ".helix/languages.toml", ".qwen/settings.json", ".crush.json", ".kilocode/mcp.json", ".amazonq/mcp.json", ".sl/config",
    "_darcs/prefs/defaults", "mise.local.toml", ".autoenv.zsh", ".cargo/config.toml", ".mvn/jvm.config", ".bazelrc",
    ".pnp.cjs", ".pylintrc", ".rubocop.yml", ".tool-versions", "lefthook-local.yml", "lefthook.yaml", ".lefthook.toml",
    ".overcommit.yml", ".woodpecker/x.yml", ".woodpecker.yml", ".semaphore/semaphore.yml", ".teamcity/settings.kts",
    ".builds/x.yml", "appveyor.yml", "cloudbuild.yaml", "buildspec.yml", ".tekton/x.yaml", ".harness/x.yaml",
)  # fmt: skip


def _python(code: str) -> str:
    return f"{_PYTHON} - <<'END'\nimport ctypes,errno,os,socket,struct,sys,time\nl=ctypes.CDLL(None,use_errno=True)\n{code}\nEND\n"


def further_cases(fake: Callable[[str], str]) -> dict[str, str]:
    """The cases by name. `fake`: a shell's words that make a repository with an evil setting in a folder."""
    return {**_kernel(), **_files(fake), **_git(fake)}


def _kernel() -> dict[str, str]:
    owner = "os.system('find . -perm -4000 | grep -q . && echo EVIL')"
    return {
        "a nameless file that runs as its owner": _python(
            "f=os.open('.',os.O_TMPFILE|os.O_RDWR,0o4755)\nos.write(f,b'#!')\n"
            f"r=l.linkat(-100,b'/proc/self/fd/%d'%f,-100,b'suid',0x400)\n{owner}"),
        "a mode by the newest call": _python(f"open('m','w').close()\nl.syscall(452,-100,b'm',0o4755,0)\n{owner}"),
        "a node that runs as its owner": _python(f"l.syscall(259,-100,b'n',0o104755,0)\nl.syscall(133,b'n2',0o104755,0)\n{owner}"),
        "a mode with further bits": _python(f"f=os.open('b',os.O_CREAT|os.O_RDWR,0o755)\nl.syscall(91,f,0x7fff0000|0o4755)\n{owner}"),
        "capabilities of a file": _python("open('c','w').close()\nos.setxattr('c','security.capability',struct.pack('<5I',0x02000001,0xffffffff,0xffffffff,0xffffffff,0xffffffff)); print('EVIL')"),
        "every family of sockets": _python("found=[]\nfor n in range(64):\n  for k in (1,2,3,5):\n    try: socket.socket(n,k).close(); found.append(n)\n    except OSError: pass\nprint('EVIL' if set(found)-{2,10,16} else found)"),
        "every family of pairs": _python("found=[]\nfor n in range(64):\n  for k in (1,2,3,4,5,0x80001,0x80802):\n    p=(ctypes.c_int*2)()\n    if l.socketpair(n,k,0,p)==0: found.append((n,k&15))\nprint('EVIL' if set(found)-{(1,1),(1,5)} else found)"),
        "a kind of socket in 64 bits": _python("p=(ctypes.c_int*2)()\nprint('EVIL' if l.syscall(53,1,ctypes.c_long((1<<33)|2),0,p)==0 else 'refused')"),
        "a terminal's request in 64 bits": _python("import pty\nm,s=os.openpty()\nprint('EVIL' if l.syscall(16,s,ctypes.c_long((1<<40)|0x5412),b'x')==0 else 'refused')"),
        "a class of tasks before all others": _python("os.sched_setscheduler(0,os.SCHED_FIFO,os.sched_param(50)); print('EVIL')"),
        "never ended for want of memory": _python("os.write(os.open('/proc/self/oom_score_adj',1),b'-1000'); print('EVIL')"),
        "the maps of a namespace": _python("for n in ('uid_map','gid_map','projid_map'):\n  try: os.write(os.open('/proc/self/'+n,1),b'0 0 1\\n'); print('EVIL')\n  except OSError: pass\nos.setresuid(0,0,0)\nprint('fine')"),
        "another user": _python("for n in (1,65534,1000):\n  if os.fork()==0:\n    try: os.setresgid(n,n,n); os.setresuid(n,n,n); print('EVIL' if os.getuid()!=0 or os.getgid()!=0 and n!=os.getgid() else '')\n    except OSError: pass\n    os._exit(0)\n  os.wait()") if os.geteuid() == 0 else "true",
        "whoever began the sandbox": _python("for p in (1,2,os.getppid()):\n  b=ctypes.create_string_buffer(64)\n  print(p,l.ptrace(16,p,0,0),os.strerror(ctypes.get_errno()))\n  for f in ('environ','maps','fd'):\n    try:\n      q='/proc/%d/%s'%(p,f); w=' '.join(os.readlink(q+'/'+n) for n in os.listdir(q)) if f=='fd' else open(q,'rb').read().decode('latin-1')\n      if 'canary' in w or '{home}/.ssh' in w or '{outside}' in w: print('EVIL')\n    except OSError: pass"),
        "descriptors that tell the agent": _python("for f in range(3,64):\n  try:\n    t=os.readlink('/proc/self/fd/%d'%f); os.write(f,b'{\"status\":0,\"reason\":null,\"message\":\"\",\"inert\":[]}'); print('EVIL',t)\n  except OSError: pass\nprint(os.readlink('/proc/self/fd/0')=='/dev/null' or os.readlink('/proc/self/fd/0'))"),
        "mounts that can be written": "awk '{ if ($6 ~ /(^|,)rw(,|$)/) print $5, $0 }' /proc/self/mountinfo | grep -vE '^({work}|/tmp|/var/tmp|/run|/var/run|/dev/shm|/dev/pts|/dev/[a-z]+|/dev|/proc) ' | grep -vE '^{work}/' && echo EVIL",
        "devices of the machine": "for d in /dev/kvm /dev/fuse /dev/net/tun /dev/mem /dev/port /dev/loop-control /dev/vhost-net /dev/uinput /dev/input /dev/dri /dev/mqueue /dev/console; do [ -e $d ] && [ -r $d ] && [ ! -d $d ] && echo EVIL $d; done; true",
        "a dump of memory": _python("import resource\nprint('EVIL' if resource.getrlimit(resource.RLIMIT_CORE)!=(0,0) else 'none')"),
        "limits that are raised": _python("import resource\nfor n in (resource.RLIMIT_FSIZE,resource.RLIMIT_CORE):\n  try: resource.setrlimit(n,(resource.RLIM_INFINITY,)*2); print('EVIL')\n  except (ValueError,OSError): pass"),
        "the clock and the name of the machine": _python("for f in (lambda: time.clock_settime(0,0), lambda: socket.sethostname('x')):\n  try: f(); print('EVIL')\n  except OSError: pass"),
        "news of the kernel": _python("s=socket.socket(16,2,15); s.bind((0,1)); s.settimeout(1)\ntry: s.recv(99); print('EVIL')\nexcept OSError: print('none')"),
        "memory of another process": _python("b=ctypes.create_string_buffer(8)\nfor p in os.listdir('/proc'):\n  if p.isdigit() and int(p) not in (os.getpid(),):\n    try:\n      if 'canary' in open('/proc/%s/mem'%p,'rb').read(1).decode('latin-1'): print('EVIL')\n    except (OSError,OverflowError): pass\nprint('EVIL' if len([p for p in os.listdir('/proc') if p.isdigit()])>8 else 'few')"),
    }  # fmt: skip


def _files(fake: Callable[[str], str]) -> dict[str, str]:
    return {
        "a folder that a live link names": "echo EVIL > conf/editor/launch.json; rm -rf conf/editor; mkdir conf/editor; echo EVIL > conf/editor/launch.json",
        "a file that a live link names": "echo EVIL > conf/envrc; rm -f conf/envrc; echo EVIL > conf/envrc",
        "a script that a live folder links": "echo EVIL > conf/launch.json; mv conf/hop conf/hop2; ln -s editor conf/hop; echo EVIL > conf/editor/other.json; mkdir conf/elsewhere; echo EVIL > conf/elsewhere/launch.json; rm conf/hop; ln -s elsewhere conf/hop",
        "what a live link names, moved": "mv conf conf2; mkdir -p conf/editor; echo EVIL > conf/envrc; echo EVIL > conf/editor/launch.json",
        "what a live link names and is not there": "mkdir -p later/editor; echo EVIL > later/editor/launch.json; echo EVIL > later/envrc",
        "what programs obey where they start": "; ".join(f"mkdir -p $(dirname {name}); echo EVIL > {name}" for name in STARTED),
        "a name with a line end": "d=$(printf 'a\\nb'); mkdir \"$d\"; cd \"$d\"; mkdir -p .vscode; echo EVIL > .vscode/tasks.json; echo EVIL > .envrc; " + fake(".git"),
        "a name that is no text": "d=$(printf 'a\\377b'); mkdir \"$d\"; cd \"$d\"; mkdir -p .vscode; echo EVIL > .vscode/tasks.json; " + fake(".git"),
        "a name like a put-aside one": "mkdir -p .vscode.inert; echo x > .envrc.inert; mkdir -p n/.vscode n/.vscode.inert; echo EVIL > n/.vscode/tasks.json; echo EVIL > n/.envrc; ln -s {outside} n/.envrc.inert",
        "a hard link to what is read-only": "ln .git/config c; ln .vscode/tasks.json t; ln .envrc e; for f in c t e; do echo EVIL >> $f; done",
        "changing places": _python("l.renameat2(-100,b'.vscode',-100,b'evil',2)\nos.makedirs('evil',exist_ok=True)\nopen('evil/launch.json','w').write('EVIL')\nfor n in (b'.vscode',b'.git',b'.claude',b'.envrc'): print(l.renameat2(-100,b'evil',-100,n,2))"),
        "an overlay of the folder": "mount -t overlay o -o lowerdir={home},upperdir=/tmp/u,workdir=/tmp/w {home} && echo EVIL; fusermount -u {home} 2>/dev/null; true",
        "links that lead above": "mkdir -p a/b; ln -s ../../../.. a/b/up; echo EVIL > a/b/up/outside/file; cp a/b/up/home/.ssh/id x; cat x",
        "rights of others on what is outside": "setfacl -m u:0:rwx {outside} {home} 2>/dev/null && echo EVIL; chown 0:0 {outside}/file 2>/dev/null; chattr +i {outside}/file 2>/dev/null && echo EVIL; true",
        "files nobody may take away": "mkdir ro; touch ro/x; chmod 0 ro/x; chmod 555 ro; mkdir -p ro2/.vscode; echo EVIL > ro2/.vscode/tasks.json; chmod 0 ro2/.vscode/tasks.json ro2/.vscode; chmod 555 ro2",
        "a pipe that programs obey": "mkdir pipes; mkfifo pipes/.envrc pipes/.gitmodules; mkdir pipes/.git; mkfifo pipes/.git/config pipes/.git/HEAD",
    }  # fmt: skip


def _git(fake: Callable[[str], str]) -> dict[str, str]:
    return {
        "a strategy of a rebase": _BRANCHES + " GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i main; echo x/y > .git/rebase-merge/strategy",
        "options of a rebase's strategy": _BRANCHES + " GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i main; echo x/y > .git/rebase-merge/strategy; echo \"'--evil'\" > .git/rebase-merge/strategy_opts; echo '-S' > .git/rebase-merge/gpg_sign_opt",
        "a strategy of picks": _BRANCHES + " git checkout -q main; echo 9 > two; git add two; git commit -qm nine; git cherry-pick side~1 side; printf '[options]\\n\\tstrategy = x/y\\n' > .git/sequencer/opts; git checkout -q --ours two; git add two",
        "a merge in the orders": _BRANCHES + " GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i main; printf 'merge -C side side~1 # x\\nlabel x\\nreset main\\nupdate-ref refs/heads/z\\n' > .git/rebase-merge/git-rebase-todo; echo x/y > .git/rebase-merge/strategy",
        "orders in other letters": _BRANCHES + " GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i main; printf '\\vexec touch {proof}\\n \\r x touch {proof}\\nexec\\ttouch {proof}\\n' > .git/rebase-merge/git-rebase-todo",
        "patches that wait": _BRANCHES + " mkdir .git/rebase-apply; cd .git/rebase-apply; git rev-parse HEAD > abort-safety; echo 1 > next; echo 1 > last; : > applying; echo t > threeway; printf \"GIT_AUTHOR_NAME='$(touch {proof})'\\n\" > author-script; git format-patch -1 --stdout > 0001; for f in keep messageid scissors no_inbody_headers utf8 sign quiet apply-opt rerere-autoupdate; do echo f > $f; done; echo --directory=../../../outside > apply-opt",
        "a list of heads behind a link": "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; ln -sf {home}/.profile .git/FETCH_HEAD; ln -sf {home}/.profile .git/ORIG_HEAD; ln -sf {home}/.profile .git/MERGE_MSG; ln -sf {home}/.profile .git/packed-refs",
        "objects of another repository": "mkdir -p .git/objects/info; echo {outside}/objects > .git/objects/info/alternates; git log -1 >/dev/null; ln -s {outside} .git/objects/pack/x; true",
        "a hook of what is shared": "cd tree 2>/dev/null; cd {work}; cat .git/worktrees/tree/gitdir; mkdir -p .git/worktrees/tree/hooks; " + _RUNS + " > .git/worktrees/tree/hooks/post-index-change && chmod +x .git/worktrees/tree/hooks/post-index-change && echo EVIL",
        "an index that names the settings": "printf 'x' > x; git update-index --add --cacheinfo 100644,$(git hash-object -w x),.git/config; git update-index --add --cacheinfo 120000,$(printf ../../outside | git hash-object -w --stdin),esc; git update-index --add --cacheinfo 100644,$(git hash-object -w x),esc/file; true",
        "settings in the terminal's own words": "git config --global core.fsmonitor 'touch {proof}'; git config --system core.fsmonitor x && echo EVIL; true",
        "a repository in a bundle of links": "mkdir b; " + fake("b/r") + "; mkdir b/c; ln -s ../r b/c/.git; ln -s b/c cc; mkdir b/d; ln -s ../r/HEAD b/d/HEAD; ln -s ../r/objects b/d/objects; ln -s ../r/refs b/d/refs; cp b/r/config b/d/config; printf '\\tworktree = .\\n' >> b/d/config",
        "a repository in a linked tree": "ls {home}/tree >/dev/null && echo evil > {home}/tree/.git && echo EVIL; true",
        "a module of a new name": "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = ./x\\n\\tupdate = !touch {proof}\\n' > .gitmodules; mkdir -p x; " + fake("x/.git"),
    }  # fmt: skip
