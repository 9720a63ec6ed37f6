"""Starting the command line so that it can be interrupted."""

import signal
import subprocess
import sys


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
