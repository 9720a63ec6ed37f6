"""Loading: the compiled function is ready to run, or it is said in words why there is none."""

from __future__ import annotations


def require_machine() -> None:
    """Compile the function that runs instructions, or load it.

    Raises:
        ImportError: If there can be none. The message says what is wrong, and what to do about it.
    """
    try:
        from a2ls.recorder._machine import load  # noqa: PLC0415 (Numba and PyTorch take seconds to import)

        load()
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}; install 'a2ls[fast]' to have them compiled") from error
    except ImportError:
        raise
    except Exception as error:  # Whatever it is, PyTorch can do without.
        reason = str(error).partition("\n")[0]
        raise ImportError(f"Numba does not work here ({type(error).__name__}: {reason})") from error
