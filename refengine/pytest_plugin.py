"""The pytest plugin: a fixture that audits a sampler of yours, and a test for each claim about a server.

    def test_my_sampler_is_lossless(audit_sampler):
        audit_sampler("my_engine.sampling:verify", signature="verify")

    pytest --refengine-on http://localhost:8000/v1 --refengine-off http://localhost:8001/v1

The claims are found at collection, by asking the servers what they take; the first of their tests makes the audit.
Without servers it registers no marker and no test, and imports neither torch nor the auditor at collection: both are
paid for by the tests that use them.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from refengine.evidence.alpha import ALPHA

if TYPE_CHECKING:
    from refengine.report.finding import Finding


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("refengine", "a server with speculation beside one without")
    group.addoption("--refengine-on", metavar="URL", help="the server with speculation, up to /v1")
    group.addoption("--refengine-off", metavar="URL", help="the same model without")
    group.addoption("--refengine-model", metavar="NAME", help="as the servers call it, where they need it")
    group.addoption("--refengine-requests", metavar="N", type=int, default=3000, help="most that are sent; 3000")
    group.addoption("--refengine-allow-untested", action="store_true", help="skip untested claims, which fail without")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test for each claim about the servers, where some are named."""
    on, off = config.getoption("--refengine-on"), config.getoption("--refengine-off")
    if on is None and off is None:
        return
    if on is None or off is None:
        raise pytest.UsageError("--refengine-on and --refengine-off go together")
    if getattr(config, "workerinput", None) is not None:
        raise pytest.UsageError("the claims about a server are one audit, which is not split over processes: use -n 0")
    from refengine.audit.served.endpoint import opened_servers
    from refengine.errors import BadInput

    stack = ExitStack()
    config.add_cleanup(stack.close)
    requests, model = config.getoption("--refengine-requests"), config.getoption("--refengine-model")
    try:
        audit = stack.enter_context(opened_servers(on, off, requests, model))
    except BadInput as error:
        raise pytest.UsageError(str(error)) from None
    found: dict[str, Any] = {}
    items += [Claim.from_parent(session, name=name, audit=audit, found=found) for name in audit.names()]


class Claim(pytest.Item):
    """One claim. found: what the audit found, by name; empty before the first claim is asked about."""

    def __init__(self, audit: Any, found: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.audit, self.found = audit, found

    def runtest(self) -> None:
        if not self.found:
            self.found.update(self.audit.run())
        finding = self.found.get(self.name)
        if finding is None:
            pytest.skip("a side does not do it, or no answer showed anything of it")
        print(f"{finding.verdict}: {finding.claim} [{finding.method}]", *finding.notes, sep="\n")
        if finding.verdict == "violated":
            pytest.fail(f"{finding.diagnosis}\nwitness: {finding.witness}", pytrace=False)
        if finding.verdict == "not tested":
            allowed = self.config.getoption("--refengine-allow-untested")
            (pytest.skip if allowed else pytest.fail)(f"not tested: {finding.reason}")

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"refengine: {self.name}"


@pytest.fixture
def audit_sampler(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Audit "module:function" in a child process; the test fails when it is violated or could not be tested.

    subject    "module:function"; what it prints is shown as pytest shows what a test prints
    signature  "verify" | "verify_batch" | "round"
    path       a folder for the import path, by default pytest's root
    seed       of every draft and generator; 0
    alpha      the probability that a correct sampler fails the test; that of every audit unless given
    calls      how many are sampled; by default 10,000 to 50,000 by signature. 500 take some seconds and show a total
               variation of 0.4, 3,000 one of 0.2. A number of calls gives the same verdict on every machine.
    seconds    a time limit; none unless given where calls are, else ten minutes
    out        a file for the report, which `refengine rerun` makes again; written whether the test fails or not
    """

    def audit(
        subject: str,
        signature: str = "verify",
        *,
        path: str | Path | None = None,
        seed: int = 0,
        alpha: float = ALPHA,
        calls: int | None = None,
        seconds: float | None = None,
        out: str | Path | None = None,
    ) -> None:
        __tracebackhide__ = True
        folder = str(path if path is not None else request.config.rootpath)
        failure = _failure(subject, signature, folder, seed, alpha, calls, seconds, Path(out) if out else None)
        if failure:
            pytest.fail(failure, pytrace=False)

    return audit


def _failure(
    subject: str,
    signature: str,
    path: str,
    seed: int,
    alpha: float,
    calls: int | None,
    seconds: float | None,
    out: Path | None,
) -> str:
    """What a test fails with; "" where the sampler is consistent."""
    from refengine.audit.kernel.request import Request
    from refengine.errors import BadInput

    try:
        asked = Request(subject, signature, path, seed, alpha, seconds, calls)
        asked.check_that_it_exists()
        from refengine.audit.kernel.audit import audited
        from refengine.commands.told import told

        found = audited(asked)
    except BadInput as error:
        return f"refengine: {error}"
    if found.printed:
        print(found.printed)
    unsaved = _unsaved(found.finding, out) if out is not None else ""
    if found.finding.verdict == "consistent":
        print(f"{subject} is consistent: {found.finding.method}; {found.advice}")
        return unsaved
    head = f"{subject} is not shown to be lossless: {found.finding.verdict}"
    beside = [found.advice] if found.advice and found.finding.verdict == "not tested" else []
    last = unsaved or again(subject, signature, path, seed, calls, out)
    return "\n".join([head, *told(found.finding), *beside, last])


def _unsaved(finding: "Finding", out: Path) -> str:
    """Why the report could not be written, which hides no verdict; "" where it is."""
    from refengine.commands.told import save
    from refengine.errors import BadInput

    try:
        save([finding], out)
    except BadInput as error:
        return f"refengine: the report could not be written: {error}"
    return ""


def again(subject: str, signature: str, path: str, seed: int, calls: int | None, out: Path | None) -> str:
    """The command that makes the finding again."""
    import shlex

    if out is not None:
        return f"again: {shlex.join(['refengine', 'rerun', str(out)])}"
    options = ["--signature", signature, "--path", path, "--seed", str(seed)]
    options += ["--calls", str(calls)] if calls else []
    return f"again: {shlex.join(['refengine', 'audit', 'kernel', subject, *options])}"
