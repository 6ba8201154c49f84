"""Errors that were published, each an edit of one line of the model: how the line read before it was mended."""

import inspect
import sys
from dataclasses import dataclass
from types import ModuleType

from proofs.protocol import model as honest

MODEL = honest.__name__


@dataclass(frozen=True)
class Error:
    """what goes wrong, where it was published, the line and how it read, and whether it needs scheduling ahead."""

    name: str
    source: str
    line: str
    read: str
    ahead: bool = True

    def model(self) -> ModuleType:
        """The model with this error. Raises ValueError where the line is not found once."""
        text = inspect.getsource(honest)
        if text.count(self.line) != 1:
            raise ValueError(f"{self.name}: {self.line!r} stands {text.count(self.line)} times in the model")
        made = ModuleType(f"{MODEL}: {self.name}")
        sys.modules[made.__name__] = made  # for the annotations of its tuples
        exec(compile(text.replace(self.line, self.read), made.__name__, "exec"), made.__dict__)
        return made


ERRORS = (
    Error(
        "refused drafts stay computed",
        "vllm-project/vllm PR #24799 (_update_computed_tokens)",
        "computed = q.computed - (out.drafts - out.kept)",
        "computed = q.computed",
        ahead=False,
    ),
    Error(
        "drafts that the budget cut are taken back too",
        "vllm-project/vllm PR #18668 (len(spec_token_ids) where the scheduled drafts are meant)",
        "computed = q.computed - (out.drafts - out.kept)",
        "computed = q.computed - (sizes.gamma - out.kept if out.drafts else 0)",
        ahead=False,
    ),
    Error(
        "scheduled again before the sampled token is back",
        "vllm-project/vllm #52071, PR #52179 (next_decode_eligible_step set in one scheduler of two)",
        "q.flying == 0 or (sizes.ahead and q.flying == 1)",
        "q.flying <= 1",
        ahead=False,
    ),
    Error(
        "the worker starts where all drafts would have been kept",
        "vllm-project/vllm PR #22262 (computed tokens overwritten in the model runner)",
        "start = row.start - (q.refused if row.early else 0)",
        "start = row.start",
    ),
    Error(
        "placeholders outlive a step without the request",
        "vllm-project/vllm PR #46899, PR #40768, #37159",
        "requests[i] = requests[i]._replace(drafts=0)",
        "pass",
    ),
    Error(
        "placeholders outlive a preemption",
        "vllm-project/vllm PR #40768 (a request that is added again)",
        "Request(q.known, drafts=0, stale=q.stale)",
        "Request(q.known, drafts=q.drafts, stale=q.stale)",
    ),
    Error(
        "an output of before the preemption is taken",
        "vllm-project/vllm #41190, PR #49620",
        "stale=q.stale + q.flying",
        "stale=q.stale",
    ),
    Error(
        "a second preemption forgets the outputs of before the first",
        "vllm-project/vllm PR #49620 (the budget is preserved across repeated preemptions)",
        "stale=q.stale + q.flying",
        "stale=q.flying",
    ),
    Error(
        "blocks with drafts enter the prefix cache",
        "vllm-project/vllm PR #18668 (what may be cached during speculation)",
        "settled = q.known - 1",
        "settled = q.computed",
    ),
    Error(
        "a block of tokens overshoots the limit",
        "sgl-project/sglang #31599",
        "known = min(known, length)",
        "pass",
        ahead=False,
    ),
    Error(
        "the budget drops drafts for what they are",
        "predicted: vllm-project/vllm #47808, PR #52228 argue that theirs does not",
        "    return drafts\n",
        "    return min(drafts, right)\n",
        ahead=False,
    ),
)
