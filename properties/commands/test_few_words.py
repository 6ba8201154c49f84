"""The verdict line of an audit in which much is violated."""

from refengine.audit.in_few_words import in_few_words


def test_what_says_the_same_has_one_entry_in_the_order_of_the_findings() -> None:
    """Kills a cause that comes last by its name, behind a line for each of thirty claims that show it too."""
    also = [f"state/long: another text, also in requests with p{i}, hot; at token {i}" for i in range(9)]
    said = in_few_words(
        [
            "list of prompts: with speculation this does not hold: a",
            "echo: another text with speculation; it vanishes below 2 tokens",
            *also,
            "a fault, with speculation alone, in requests with n",
            "another fault, with speculation alone",
            "echo (chat): another text with speculation",
            "stop: the text goes on for 3 characters past its end with speculation",
            "bad_words, hot: the text goes on for 12 characters past its end with speculation",
        ]
    )
    assert said == [
        "list of prompts: with speculation this does not hold: a",
        "echo: another text with speculation",
        "state/long: another text, also in requests with p0, p1, p2 and 6 more",
        "a fault, with speculation alone, in requests with n",
        "another fault, with speculation alone",
        "stop, bad_words: the text goes on past its end with speculation",
    ]
    ignored = [f"bias{how}: ignored with speculation; the first difference is at token 1" for how in ("", " (chat)")]
    assert in_few_words(ignored) == ignored[:1]
