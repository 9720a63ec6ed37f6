"""Programs and commands in processes of their own."""

import os
import signal
import subprocess
import sys


def run_python(code, *arguments, without=(), cwd=None, silent=False, **variables):
    """What a program prints, run with these variables and `without` those of this process.

    An error fails the test, as does any word on stderr if it must be `silent`.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in without}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=inherited | variables,
    )
    assert done.returncode == 0, done.stderr
    assert not (silent and done.stderr), done.stderr
    return done.stdout


def start(*arguments):
    """The command `a2ls` as a process of its own, as from a terminal: where tests run in the background of a script,
    that script's shell has told all of its children to ignore Ctrl-C.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "a2ls", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 (no thread runs meanwhile)
    )
