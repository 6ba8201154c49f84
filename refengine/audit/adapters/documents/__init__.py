"""The programs that two documents print, run as they stand: a verifier, loops, steps, a cache, networks.

Read `promises.py` (what each must do, and the edit of its text by which it does), then `printed.py` (the findings). The
child that they run in is `selfcheck/documents`; the programs are typed in under `fixtures/subjects/printed`.
"""

from functools import partial

from refengine.audit.adapters import Adapter, package_version
from refengine.audit.adapters.documents.printed import INSTALL, audit_printed
from refengine.audit.adapters.documents.promises import PROMISES

ADAPTER = Adapter(
    name="documents",
    install=INSTALL,
    version=partial(package_version, "transformers", INSTALL),
    audits={program: partial(audit_printed, program) for program in dict.fromkeys(p.program for p in PROMISES)},
)
