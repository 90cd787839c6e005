"""`python -m calibrant`: the command line, where the script `calibrant` is not on the path.

May import `calibrant.cli`.
"""

import sys

from calibrant.cli import main

if __name__ == "__main__":
    sys.exit(main())
