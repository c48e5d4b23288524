"""`dragoman`, and `python -m dragoman`: the command line."""

import signal
import sys


def main() -> int:
    """Run the command line. While Python still imports it, Ctrl-C ends the process as the system does, silently."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dragoman.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
