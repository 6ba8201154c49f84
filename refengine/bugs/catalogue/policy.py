"""Part A2: the law that is preserved is not the one that the user asked for."""

from refengine.bugs.bug import Bug, Edit

POLICY = "refengine.exact.policy"

BUGS = (
    Bug(
        id="temperature-dropped",
        title="the sampling parameters of the target are fixed: temperature never reaches its row",
        source="vllm-project/vllm #9834, PR #10198; ohdearquant/lattice #388",
        part="A2",
        law_class="temperature dropped",
        edits=(Edit(POLICY, "tuple(Fraction(w) ** inverse for w in weights)", "tuple(Fraction(w) for w in weights)"),),
        check="policies:weights",
    ),
    Bug(
        id="frequency-penalty-ignored",
        title="frequency_penalty has no effect under speculation, and nothing says so",
        source="vllm-project/vllm #18902",
        part="A2",
        law_class="penalty ignored",
        edits=(Edit(POLICY, "w * factor ** prefix.count(x)", "w"),),
        check="policies:weights",
    ),
    Bug(
        id="penalty-counts-last-twice",
        title="the penalty kernel counts the last sampled token twice",
        source="vllm-project/vllm PR #33251 (review)",
        part="A2",
        law_class="penalty counts twice",
        edits=(Edit(POLICY, "prefix.count(x) for", "(prefix.count(x) + (prefix[-1:] == (x,))) for"),),
        check="policies:weights",
    ),
    Bug(
        id="penalty-history-stale",
        title="the history that a penalty sees lags one token behind",
        source="ml-explore/mlx-lm #1175; ml-explore/mlx-examples #1255",
        part="A2",
        law_class="penalty history stale",
        edits=(Edit(POLICY, "w * factor if x in prefix else w", "w * factor if x in prefix[:-1] else w"),),
        check="policies:weights",
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
        check="policies:weights",
    ),
)
