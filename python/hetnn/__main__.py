"""`python -m hetnn` is the command line."""

import sys

from hetnn.cli import main

sys.exit(main())
