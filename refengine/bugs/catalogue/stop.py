"""Part A3: stop tokens, lengths, grammars."""

from refengine.bugs.catalogue.policy import ROWS
from refengine.source_edits.edit import Bug, Edit

EXACT, LOOP = "refengine.exact.loop", "refengine.decoder.loop"
EXACT_END = "            if token in stop or len(out) == max_new_tokens:\n                return out\n"
DONE = "self.done = self.stop.reached(self.out) or len(self.out) == self.max_new_tokens"
EMIT = "emitted = self._emit(verdict.tokens)"

BUGS = (
    Bug(
        id="stop-inside-block-missed",
        title="a stop token that is accepted inside a block does not end the output: only the last token is looked at",
        source="huggingface/transformers #47912",
        part="A3",
        law_class="stop inside a block missed",
        edits=(
            Edit(
                EXACT,
                EXACT_END,
                "            if len(out) == max_new_tokens:\n                return out\n"
                "        if out[-1] in stop:\n            return out\n",
            ),
        ),
        check="loops:law",
    ),
    Bug(
        id="limit-before-stop",
        title="the length is checked before the stop strings, once per chunk: text after the stop leaks",
        source="sgl-project/sglang #31599",
        part="A3",
        law_class="stop inside a block missed",
        edits=(
            Edit(
                LOOP,
                DONE,
                "self.done = len(self.out) == self.max_new_tokens or (\n"
                "                count == len(tokens) and self.stop.reached(self.out)\n            )",
            ),
        ),
        check="pytest:properties/decoder/test_ends.py",
    ),
    Bug(
        id="block-overshoots-limit",
        title="a chunk of accepted tokens runs over max_new_tokens",
        source="sgl-project/sglang #31599",
        part="A3",
        law_class="limit overshot",
        edits=(Edit(EXACT, "if token in stop or len(out) == max_new_tokens:", "if token in stop:"),),
        check="loops:law",
    ),
    Bug(
        id="text-after-stop-is-shown",
        title="the tokens after the end reach the interface, although the request has ended",
        source="LostRuins/koboldcpp #1276",
        part="A3",
        law_class="emitted past the end",
        edits=(Edit(LOOP, "return tokens[:count]", "return tokens"),),
        check="decoding:contract",
    ),
    Bug(
        id="rejected-stop-finishes",
        title="a drafted stop token marks the sequence finished although the target refused it",
        source="openvinotoolkit/openvino.genai PR #3293",
        part="A3",
        law_class="rejected stop finishes",
        edits=(
            Edit(LOOP, EMIT, f"{EMIT}\n        self.done = self.done or bool(self.stop.tokens & set(nodes(block)[0]))"),
        ),
        check="decoding:law",
    ),
    Bug(
        id="goes-on-after-stop",
        title="tokens after a stop token are kept and generation goes on",
        source="openvinotoolkit/openvino.genai PR #1951",
        part="A3",
        law_class="goes on after stop",
        edits=(Edit(EXACT, EXACT_END, EXACT_END.replace("return out", "break")),),
        check="loops:law",
    ),
    Bug(
        id="grammar-not-advanced",
        title="drafted tokens after the opening tag do not advance the grammar inside the block",
        source="vllm-project/vllm #31858, #34650, PR #34241, PR #36138, #44297",
        part="A3",
        law_class="grammar lags",
        edits=(Edit("refengine.engine.policy", "for token in prefix:", "for token in prefix[:-1]:"),),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="bonus-row-unmasked",
        title="the padding of one invalid draft leaves the bonus row without the grammar's mask",
        source="vllm-project/vllm #44006, PR #44292",
        part="A3",
        law_class="bonus row unmasked",
        edits=(
            Edit(
                "refengine.engine.policy",
                ROWS,
                f"out = {ROWS[19:-1]}\n"
                "    return torch.stack([*out[:-1], logits[-1].softmax(-1)]) if len(out) > 1 else out[0][None]",
            ),
        ),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="finish-by-text-missed",
        title="a finish that is not a stop token is never noticed on the speculative path",
        source="sgl-project/sglang PR #21723, #9187",
        part="A3",
        law_class="finish by text missed",
        edits=(Edit(LOOP, "return self.decode is not None and any(", "return self.decode is None and any("),),
        check="pytest:properties/decoder/test_ends.py",
    ),
    Bug(
        id="accepted-token-twice",
        title="the n-gram path writes an accepted token twice",
        source="Blackwellboy/model-serving-minefield #94",
        part="A3",
        law_class="token duplicated",
        edits=(Edit("refengine.exact.rules.point_mass", "tokens.append(x)", "tokens.extend((x, x))"),),
        check="rounds:law",
    ),
    Bug(
        id="grammar-not-applied",
        title="the heads' verification ignores the grammar",
        source="dottxt-ai/outlines #845",
        part="A3",
        law_class="grammar ignored",
        edits=(Edit("refengine.exact.policy", "w if x in transitions[state] else Fraction(0)", "w"),),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
)
