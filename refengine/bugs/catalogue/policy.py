"""Part A2: the law that is preserved is not the one that the user asked for."""

from refengine.source_edits.edit import Bug, Edit

LOGITS, LOOP = "refengine.engine.policy", "refengine.decoder.loop"
ROWS = "return torch.stack([policy(row, prompt, prefix + path) for row, path in zip(logits, paths, strict=True)])"
POLICY = "refengine.exact.policy"

BUGS = (
    Bug(
        id="temperature-dropped",
        title="the sampling parameters of the target are fixed: temperature never reaches its row",
        source="vllm-project/vllm #9834, PR #10198; ohdearquant/lattice #388",
        part="A2",
        law_class="temperature dropped",
        edits=(Edit(POLICY, "tuple(Fraction(w) ** inverse for w in weights)", "tuple(Fraction(w) for w in weights)"),),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="frequency-penalty-ignored",
        title="frequency_penalty has no effect under speculation, and nothing says so",
        source="vllm-project/vllm #18902",
        part="A2",
        law_class="penalty ignored",
        edits=(Edit(POLICY, "w * factor ** prefix.count(x)", "w"),),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="penalty-counts-last-twice",
        title="the penalty kernel counts the last sampled token twice",
        source="vllm-project/vllm PR #33251 (review)",
        part="A2",
        law_class="penalty counts twice",
        edits=(Edit(POLICY, "prefix.count(x) for", "(prefix.count(x) + (prefix[-1:] == (x,))) for"),),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="penalty-history-stale",
        title="the history that a penalty sees lags one token behind",
        source="ml-explore/mlx-lm #1175; ml-explore/mlx-examples #1255",
        part="A2",
        law_class="penalty history stale",
        edits=(Edit(POLICY, "w * factor if x in prefix else w", "w * factor if x in prefix[:-1] else w"),),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="sampling-decodes-greedily",
        title="on one backend every request at a positive temperature is decoded greedily",
        source="sgl-project/sglang #31214, PR #37134",
        part="A2",
        law_class="greedy at temperature",
        edits=(
            Edit(
                POLICY,
                "lambda weights, prompt, prefix: tuple(Fraction(w) ** inverse for w in weights)",
                "greedy()",
            ),
        ),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="temperature-ignored-by-verifier",
        title="the verifier does not use the request's temperature",
        source="google-ai-edge/LiteRT-LM #3017",
        part="A2",
        law_class="temperature dropped",
        edits=(Edit(LOGITS, "logits / value", "logits"),),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="filters-on-bonus-only",
        title="min_p and logit_bias reach the bonus row only: the rejection sampler skips half of the processors",
        source="vllm-project/vllm #42744, PR #42802, #38202, PR #38467, PR #19482",
        part="A2",
        law_class="filters on the bonus only",
        edits=(
            Edit(
                LOGITS,
                ROWS,
                "last = policy(logits[-1], prompt, prefix + paths[-1])\n"
                "    return torch.stack([*logits[:-1].softmax(-1), last])",
            ),
        ),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="logit-bias-ignored",
        title="a token with logit_bias -100 still appears under speculation",
        source="sgl-project/sglang #10617",
        part="A2",
        law_class="bias ignored",
        edits=(Edit(LOGITS, "return logits + bias", "return logits"),),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="bonus-pass-mutates-state",
        title="the bonus pass moves processor state on, and the target rows reuse it",
        source="vllm-project/vllm #39573, PR #41768, #34668",
        part="A2",
        law_class="rows share one history",
        edits=(
            Edit(
                LOGITS, "policy(row, prompt, prefix + path) for row", "policy(row, prompt, prefix + paths[-1]) for row"
            ),
        ),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="processors-bypassed",
        title="custom logits processors are not called on the speculative path",
        source="sgl-project/sglang #26330; ml-explore/mlx-examples #1255",
        part="A2",
        law_class="policy bypassed",
        edits=(
            Edit(
                LOOP,
                "p = policy_rows(self.policy, passed.logits,",
                "p = policy_rows(lambda x, prompt, out: x.softmax(-1), passed.logits,",
            ),
        ),
        check="decoding:law",
    ),
    Bug(
        id="verified-greedily",
        title="speculation verifies greedily whatever the sampling parameters say",
        source="NVIDIA/TensorRT-LLM PR #5627; sgl-project/sglang #13116, #13153",
        part="A2",
        law_class="greedy at temperature",
        edits=(
            Edit(
                LOOP,
                "verdict = one_lane(self.rule(p[None], block, turn.coins))",
                "verdict = one_lane(self.rule((p == p.amax(-1, keepdim=True)).to(p)[None], block, turn.coins))",
            ),
        ),
        check="decoding:law",
    ),
    Bug(
        id="penalties-ignored-one-model",
        title="the one-model path silently ignores repetition penalties",
        source="NVIDIA/TensorRT-LLM PR #17701",
        part="A2",
        law_class="penalty ignored",
        edits=(Edit(LOGITS, "seen = _counts(logits, prompt + prefix) > 0", "seen = _counts(logits, ()) > 0"),),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="history-doubled",
        title="accepted tokens enter the penalty's history twice",
        source="ml-explore/mlx-lm #1175",
        part="A2",
        law_class="penalty counts twice",
        edits=(
            Edit(
                LOGITS,
                "logits - penalty * _counts(logits, prefix)\n",
                "logits - penalty * _counts(logits, prefix + prefix)\n",
            ),
        ),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
    Bug(
        id="history-keeps-rejected",
        title="a copy that shared its list: rejected drafts stay in the penalty's history",
        source="osaurus-ai/vmlx-swift #357, PR #361",
        part="A2",
        law_class="history not rolled back",
        edits=(
            Edit(
                LOOP,
                "p = policy_rows(self.policy, passed.logits, self.prompt, self.out, tokens, parents)",
                "past = sum((nodes(played.block)[0] for played in self.rounds), self.out)\n"
                "        p = policy_rows(self.policy, passed.logits, self.prompt, past, tokens, parents)",
            ),
        ),
        check="decoding:law",
    ),
    Bug(
        id="penalty-on-first-row-only",
        title="drafted tokens are missing from the history: the penalty is right on the first row of a block only",
        source="mlx-node/mlx-node PR #11 (review)",
        part="A2",
        law_class="history misses drafts",
        edits=(
            Edit(
                LOGITS,
                "policy(row, prompt, prefix + path) for row, path",
                "policy(row, prompt, prefix + path[:0]) for row, path",
            ),
        ),
        check="pytest:properties/exact_and_engine/test_policy.py",
    ),
)
