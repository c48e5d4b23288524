"""`python -m dragoman`: the command line."""

import sys

from dragoman.cli.main import main

sys.exit(main())
