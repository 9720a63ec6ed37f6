"""A PostgreSQL server for tests, which ends with them, however they end."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Starts the server and waits for its standard input: a letter is the wish to end the server, its end is the end of the
# tests, and then the files go too. SIGQUIT is PostgreSQL's end without goodbye: connections break off, and what was
# committed is recovered from its log at the next start.
_GUARDIAN = """
import os, shutil, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
user, folder, *command = sys.argv[1:]
rights = {"user": user, "group": int(os.stat(folder).st_gid), "extra_groups": []} if user else {}
with open(folder + "/log", "ab") as log:
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **rights)
word = os.read(0, 1)
server.send_signal(signal.SIGQUIT)
server.wait()
if not word:
    shutil.rmtree(folder, ignore_errors=True)
"""
_SECONDS = 120


def find_program(name):
    """A program of PostgreSQL's server, or None."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return shutil.which(name) or next(map(str, installed), None)


class PostgreSQL:
    """A server that listens on a Unix socket in its own folder, to whoever may look into it."""

    def __init__(self):
        # PostgreSQL refuses to run as root. The folders that pytest makes are for root alone.
        self._user = next(_others(), "") if os.getuid() == 0 else ""
        self.folder = Path(tempfile.mkdtemp(prefix="a2ls-pg-"))
        if self._user:
            entry = pwd.getpwnam(self._user)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        self._guardian = None
        self._databases = 0
        data = f"{self.folder}/data"
        made = [find_program("initdb"), "-D", data, "-U", "a2ls", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        rights = {"user": self._user, "group": self.folder.stat().st_gid, "extra_groups": []} if self._user else {}
        subprocess.run(made, check=True, capture_output=True, cwd="/", **rights)
        self.start()

    def start(self):
        settings = {"listen_addresses": "", "unix_socket_directories": self.folder, "fsync": "off"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [find_program("postgres"), "-D", f"{self.folder}/data", *options]
        self._guardian = subprocess.Popen(
            [sys.executable, "-c", _GUARDIAN, self._user, str(self.folder), *command],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        deadline = time.monotonic() + _SECONDS
        while not self._answers():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.05)

    def stop(self):
        """End the server in the middle of whatever it does."""
        self._end(b".")

    def close(self):
        self._end(b"")

    def _end(self, word):
        self._guardian.communicate(word, timeout=_SECONDS)
        self._guardian = None

    def new_database(self):
        """The URL of an empty database."""
        self._databases += 1
        name = f"test{self._databases}"
        self.execute(f"CREATE DATABASE {name}")
        return f"postgresql://a2ls@/{name}?host={self.folder}"

    def execute(self, statement, *values):
        import psycopg

        with psycopg.connect(host=str(self.folder), user="a2ls", dbname="postgres", autocommit=True) as connection:
            return connection.execute(statement, values)

    def _answers(self):
        import psycopg

        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


def _others():
    """Users that may do less than root."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return (name for name in ("postgres", "nobody") if name in known)
