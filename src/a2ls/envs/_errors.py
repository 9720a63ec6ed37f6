"""The error of this package."""

from a2ls._errors import BadInput


class UnsuitableEnvironment(BadInput):
    """The environment is unknown, cannot be made here, or is not one the agent can learn from.

    The message is written for the user, so that a command line can print it without a traceback.
    """
