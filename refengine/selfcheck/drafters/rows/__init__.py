"""One file for every drafter of the decoder, under its name: its rows of the table (see `row.py`), by their names."""
