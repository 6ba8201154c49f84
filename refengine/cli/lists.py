"""`refengine bugs` and `claims`: what is in the catalogue, and what is claimed on which evidence."""

from refengine.cli.output import AsJson, print_rows


def bugs(as_json: AsJson = False) -> None:
    """The catalogue of real defects, each an edit of the running source."""
    from refengine.bugs.catalogue import all_bugs

    rows = [{"id": b.id, "class": b.law_class, "title": b.title, "source": b.source} for b in all_bugs()]
    print_rows(rows, as_json)


def claims(as_json: AsJson = False) -> None:
    """Every claim with its source, verdict and evidence."""
    from refengine.claims import load

    print_rows([claim.record() if as_json else claim.summary() for claim in load()], as_json)
