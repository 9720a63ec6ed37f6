"""`python -m a2ls` is the command `a2ls`."""

import sys

from a2ls.cli import main

sys.exit(main())
