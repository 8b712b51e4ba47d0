"""A PostgreSQL server of the tests' own, on loopback, in a folder that goes when they end."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

DEBIAN = Path("/usr/lib/postgresql")  # Debian keeps the server's programs out of the path


def programs():
    """The folder with initdb and pg_ctl, of the newest server there is, or None."""
    found = shutil.which("initdb")
    if found is not None and shutil.which("pg_ctl") is not None:
        return Path(found).parent
    there = [path.parent for path in DEBIAN.glob("*/bin/initdb")]
    return max(there, key=lambda path: float(path.parent.name), default=None)


def as_another_user():
    """Words before a command, and that user: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return [], None
    names = {user.pw_name for user in pwd.getpwall()}
    user = next((name for name in ("postgres", "nobody") if name in names), None)
    runuser = shutil.which("runuser")
    return (None, None) if user is None or runuser is None else ([runuser, "-u", user, "--"], user)


def reason_for_none():
    """Why there can be no server here; empty where there can be one."""
    if programs() is None:
        return "no PostgreSQL server here: initdb and pg_ctl are not installed"
    if as_another_user()[0] is None:
        return "PostgreSQL does not run as root, and there is no other user to run it"
    return ""


@contextmanager
def server():
    """Start a server; yields what psycopg connects with, and stops it at the end."""
    before, user = as_another_user()
    with tempfile.TemporaryDirectory(prefix="labelfree-") as folder:
        if user is not None:
            shutil.chown(folder, user)
        data = f"{folder}/data"
        run = lambda *words: subprocess.run(  # noqa: E731
            [*before, *words], check=True, cwd=folder, stdout=subprocess.DEVNULL
        )
        run(programs() / "initdb", "-D", data, "-A", "trust", "-U", "tester", "-E", "UTF8", "-N")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
        log = f"{folder}/log"
        run(programs() / "pg_ctl", "-D", data, "-w", "-l", log, "-o", settings, "start")
        try:
            yield f"host=127.0.0.1 port={port} user=tester dbname=postgres"
        finally:
            run(programs() / "pg_ctl", "-D", data, "-m", "immediate", "stop")
