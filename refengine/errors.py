"""The one exception that means: the input is at fault, and this line says what is wrong with it."""


class BadInput(ValueError):
    """Ends the command line with this one line on stderr and exit code 2."""
