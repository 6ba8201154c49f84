"""`python -m refengine.cli`, for where the installed command is not on the path."""

from refengine.cli import main

main()
