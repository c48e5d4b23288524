# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""Ways out of the agent's sandbox by what is open, shared or half a repository, tried by `reliability.escapes` too."""

from __future__ import annotations

import os
import sys
from typing import Final

_PYTHON: Final = os.path.realpath(sys.executable)
#: What is read-only in the work folder, and a file of the machine.
_KEPT: Final = "('.git/config','.vscode/tasks.json','.envrc','.github/workflows/x.yml','.git/HEAD/../config','/etc/hostname','/etc/passwd')"
#: Calls that only a machine's administrator may make, with arguments that do nothing where they are allowed.
_ADMINISTRATORS: Final = "((246,0,0,0,0),(175,0,0,b''),(313,-1,b'',0),(167,b'/nowhere',0),(168,b'/nowhere'),(172,3),(173,0,1,1),(179,0,b'/',0,0),(155,b'/',b'/'),(166,b'/nowhere',2),(227,0,b'\\0'*16),(170,b'x',1),(171,b'x',1),(304,-100,b'\\0'*16,0),(429,-100,b'/',-100,b'/tmp',0),(432,0,0,0),(433,-100,b'/',0),(442,-100,b'/',0,b'\\0'*32,32),(134,b'/nowhere'),(180,0,0,0),(153,))"


def _python(code: str) -> str:
    return f"{_PYTHON} - <<'END'\nimport ctypes,mmap,os,socket,struct,sys,time\nl=ctypes.CDLL(None,use_errno=True)\n{code}\nEND\n"


def other_cases(config: str) -> dict[str, str]:
    """The cases by name. `config`: an evil file of settings of Git, as a shell's printf takes it."""
    return {**_open_and_shared(), **_halves(config)}


def _open_and_shared() -> dict[str, str]:
    namespaces = {name: os.readlink(f"/proc/self/ns/{name}") for name in ("ipc", "mnt", "net", "pid", "user", "uts")}
    return {
        "the namespaces of the machine": _python(
            f"for n,w in {namespaces!r}.items():\n  if os.readlink('/proc/self/ns/'+n)==w: print('EVIL',n)"),
        "descriptors of other processes": _python(
            "for p in range(1,40):\n  f=l.syscall(434,p,0)\n  for n in range(24) if f>=0 and p!=os.getpid() else ():\n    g=l.syscall(438,f,n,0)\n    if g>=0:\n      try: w=os.readlink('/proc/self/fd/%d'%g)\n      except OSError: w='?'\n      if not w.startswith(('/dev/','pipe:','socket:','anon_inode:','{work}','/tmp')): print('EVIL',w)\nprint('fine')"),
        "a descriptor opened again for writing": _python(
            f"for n in {_KEPT}:\n  try:\n    f=os.open(n,os.O_RDONLY); g=os.open('/proc/self/fd/%d'%f,os.O_RDWR); os.write(g,b'EVIL'); print('EVIL',n)\n  except OSError: pass"),
        "a shared map of what is read-only": _python(
            f"for n in {_KEPT}:\n  try:\n    f=os.open(n,os.O_RDONLY); m=mmap.mmap(f,1,mmap.MAP_SHARED,mmap.PROT_READ|mmap.PROT_WRITE); m[0]=65; print('EVIL',n)\n  except (OSError,ValueError,TypeError): pass"),
        "memory written through its file": _python(
            f"for n in {_KEPT}:\n  try:\n    f=os.open(n,os.O_RDONLY); m=mmap.mmap(f,1,mmap.MAP_SHARED,mmap.PROT_READ); a=int(next(x for x in open('/proc/self/maps') if x.rstrip().endswith(os.path.realpath(n))).split('-')[0],16)\n    w=open('/proc/self/mem','r+b',0); w.seek(a); w.write(b'E'); print('EVIL' if open(n,'rb').read(1)==b'E' else 'a copy')\n  except (OSError,ValueError,TypeError,StopIteration): pass"),
        "names and attributes of what is read-only": _python(
            f"for n in {_KEPT}:\n  for c in (lambda: os.setxattr(n,'user.x',b'y'), lambda: os.truncate(n,0), lambda: os.utime(n,(1,1)), lambda: os.chmod(n,0o777), lambda: os.link(n,'/tmp/l'), lambda: os.rename(n,'moved'), lambda: os.unlink(n)):\n    try: c(); print('EVIL',n)\n    except OSError: pass"),
        "clones and moves of bytes": _python(
            f"import fcntl\nopen('s','w').write('EVIL'*2000)\ns=os.open('s',0)\nfor n in {_KEPT}:\n  for flags in (os.O_RDONLY,os.O_WRONLY,os.O_RDWR,os.O_WRONLY|os.O_TRUNC,os.O_PATH):\n    try: f=os.open(n,flags)\n    except OSError: continue\n    for c in (lambda: os.copy_file_range(s,f,9), lambda: os.sendfile(f,s,0,9), lambda: fcntl.ioctl(f,0x40049409,s), lambda: os.posix_fallocate(f,0,99999)):\n      try: c(); print('EVIL',n)\n      except OSError: pass"),
        "what administrators call": _python(
            f"for n,*a in {_ADMINISTRATORS}:\n  ctypes.set_errno(0)\n  if l.syscall(n,*a)>=0: print('EVIL',n)"),
        "mounts that travel": "mount --make-rshared / && echo EVIL; mount --make-private / && echo EVIL; mount -t proc p /tmp && echo EVIL; mount --rbind / /tmp && echo EVIL; grep -E ' shared:' /proc/self/mountinfo | grep -v master && echo EVIL; true",
        "groups of processes": "for d in $(find /sys/fs/cgroup -maxdepth 2 -type d 2>/dev/null | head -40); do mkdir $d/evil 2>/dev/null && echo EVIL $d; done; for f in $(find /sys/fs/cgroup -maxdepth 3 \\( -name cgroup.procs -o -name memory.max -o -name 'memory.limit*' -o -name notify_on_release \\) 2>/dev/null | head -60); do ( : >> $f ) 2>/dev/null && echo EVIL $f; done; true",
        "memory that stays behind": _python(
            "r=l.shmget(0x5d20ab,4096,0o1666)\nprint(r)\nsys.stdout.flush()\nos.system('cat /proc/sysvipc/shm | wc -l')") + "grep -q 6103211 /proc/1/root/proc/sysvipc/shm 2>/dev/null; ls /dev/shm | grep -v '^$' ; true",
        "sockets of buses and screens": _python(
            "for n in ('/run/dbus/system_bus_socket','/run/user/0/bus','/run/docker.sock','/var/run/docker.sock','/tmp/.X11-unix/X0','\\0/tmp/.X11-unix/X0','\\0/tmp/dbus-x','/run/systemd/private','/run/containerd/containerd.sock','/run/snapd.socket','/run/user/0/keyring/ssh'):\n  try: s=socket.socket(socket.AF_UNIX); s.connect(n); print('EVIL',n)\n  except OSError: pass\nfor n in ('DBUS_SESSION_BUS_ADDRESS','SSH_AUTH_SOCK','DISPLAY','WAYLAND_DISPLAY','XAUTHORITY','GPG_AGENT_INFO','DOCKER_HOST'):\n  if n in os.environ: print('EVIL',n)"),
        "descriptors sent through a pair": _python(
            "a,b=socket.socketpair()\nf=os.open('.git/config',os.O_RDONLY)\nsocket.send_fds(a,[b'x'],[f])\ng=socket.recv_fds(b,1,1)[1][0]\ntry: os.write(os.open('/proc/self/fd/%d'%g,os.O_RDWR),b'x'); print('EVIL')\nexcept OSError: print('fine')"),
        "places that swap while they are judged": _python(
            "import threading\nos.mkdir('a'); os.mkdir('a/.vscode'); os.mkdir('b')\nopen('a/.vscode/tasks.json','w').write('EVIL')\nif os.fork()==0:\n  os.setsid()\n  for f in (0,1,2): os.close(f)\n  while True:\n    l.renameat2(-100,b'a',-100,b'b',2)\ntime.sleep(0.2)\nprint('left')"),
    }  # fmt: skip


def _halves(config: str) -> dict[str, str]:
    head, settings = "printf 'ref: refs/heads/m\\n'", f"printf '{config}\\tworktree = .\\n'"
    full = f"mkdir -p D/objects D/refs/heads; {settings} > D/config"
    return {
        "a repository in two halves": f"mkdir -p e/objects e/refs w; {settings} > e/config; {head} > w/HEAD; echo ../e > w/commondir; cp e/config w/config; mkdir v; {head} > v/HEAD; echo {{work}}/e > v/commondir",
        "a repository whose head is a link": f"{full}; ln -s refs/heads/m D/HEAD; mkdir x; ln -s ../D x/.git".replace("D", "lh"),
        "a repository whose head is a hash": f"{full}; printf '%040d\\n' 0 > D/HEAD; mkdir y; cp -r D y/.git".replace("D", "hh"),
        "a repository whose head has spaces": f"{full}; printf 'ref: \\t  refs/heads/m\\n' > D/HEAD; mkdir z; cp -r D z/.git".replace("D", "sp"),
        "pointers with line ends and links": f"{full}; {head} > D/HEAD; printf 'gitdir: ../D\\r\\n\\n' > plain/.git; mkdir q; printf 'gitdir: {{work}}/D' > ptr; ln -s ../ptr q/.git; mkdir r; printf 'gitdir: ./../q/../D/.\\n' > r/.git".replace("D", "pt"),
        "a head that names what is outside": "printf 'ref: refs/heads/../../../../outside/file\\n' > .git/HEAD; rm -f nested/.git/HEAD; ln -s ../../../outside/file nested/.git/HEAD",
        "settings of one tree": f"printf '{config}' > .git/config.worktree; git config extensions.worktreeConfig true; printf '{config}' > .git/worktrees/tree/config.worktree; printf '{config}' > nested/.git/config.worktree",
        "an index in pieces": "git update-index --split-index; rm -f .git/index.lock; ln -s {home}/.profile .git/index.lock; for n in 0 1; do ln -s {home}/.profile .git/sharedindex.$(printf '%039d' 0)$n; done; true",
        "a lock that leads outside": "for n in HEAD index config packed-refs refs/heads/main FETCH_HEAD COMMIT_EDITMSG; do ln -sf {outside}/new-$(basename $n) .git/$n.lock 2>/dev/null; ln -sf {outside}/new-$(basename $n) nested/.git/$n.lock 2>/dev/null; done; true",
    }  # fmt: skip
