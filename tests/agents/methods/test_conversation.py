"""Conversations of a sleep: what is shown and kept of them, and that they keep to their tokens."""

import pytest
from scripted_replies import Script, answer, make_tools

from agents.llm.messages import Message
from agents.llm.reply import Usage
from agents.methods.answers import Unusable
from agents.methods.conversation import LEAST_ANSWER, Allowance, Conversation, SleepSpent, settle


def begin(script: Script, most: int = 10_000, **settings: int) -> Conversation:
    return Conversation(make_tools(script, **settings), "sleep/3", "system", Allowance(most))


def test_the_whole_conversation_is_shown_and_new_messages_are_kept() -> None:
    script = Script("first", answer("", "content_filter"), "third")
    conversation = begin(script)
    assert conversation.ask("one").text == "first"
    conversation.ask("two")
    conversation.ask("three")
    assert script.labels == ["sleep/3/0", "sleep/3/1", "sleep/3/2"]
    assert script.asked[2][1] == [
        Message("system", "system"),
        Message("user", "one"),
        Message("assistant", "first"),
        Message("user", "two"),
        Message("assistant", "(no answer)"),
        Message("user", "three"),
    ]
    assert [exchange.to_json() for exchange in conversation.exchanges[:2]] == [
        {
            "label": "sleep/3/0",
            "asked": [{"role": "system", "content": "system"}, {"role": "user", "content": "one"}],
            "reply": "first",
            "finish": "stop",
        },
        {
            "label": "sleep/3/1",
            "asked": [{"role": "user", "content": "two"}],
            "reply": "",
            "finish": "content_filter",
        },
    ]


def test_an_answer_gets_what_is_left_and_no_more_than_one_answer_may_have() -> None:
    script = Script(answer("a", usage=Usage(600, 300)), answer("b", usage=Usage(650, 10)))
    conversation = begin(script, most=2_000, answer_tokens=500)
    conversation.ask("x" * 594)
    conversation.ask("y" * 99)
    # 600 characters were 600 tokens, so 700 will be 701; 900 are spent.
    assert [most for _, _, most in script.asked] == [500, 2_000 - 900 - 701]


def test_a_call_that_does_not_fit_is_not_made() -> None:
    script = Script(answer("a", usage=Usage(6, 9_000)))
    conversation = begin(script)
    conversation.ask("x" * 100)
    with pytest.raises(SleepSpent, match="9006 of the sleep's 10000 tokens are used"):
        conversation.ask("y" * 100_000)
    assert len(script.asked) == len(conversation.exchanges) == 1


def test_the_least_answer_is_still_asked_for() -> None:
    assert Allowance(1).prompt_tokens(300) == 101
    for most, fits in ((101 + LEAST_ANSWER, True), (100 + LEAST_ANSWER, False)):
        script = Script("a")
        conversation = begin(script, most)
        try:
            conversation.ask("x" * 294)
        except SleepSpent:
            assert not fits
        else:
            assert fits
            assert script.asked[0][2] == LEAST_ANSWER


def test_what_the_server_does_not_count_is_estimated() -> None:
    allowance = Allowance(1_000)
    allowance.count(300, answer("x" * 30, usage=Usage()))
    assert allowance.used == 101 + 11
    allowance.count(300, answer("x" * 30, usage=Usage(None, 50)))
    assert allowance.used == 112 + 101 + 50
    allowance.count(300, answer("x" * 30, usage=Usage(600, None)))
    assert allowance.used == 263 + 600 + 61


def test_whether_answers_fit() -> None:
    conversation = begin(Script(), most=1_000, answer_tokens=300)
    # 6 characters and 294 more: 101 tokens, and 300 for an answer; then 401 and 300.
    assert conversation.fits(1, 294)
    assert not conversation.fits(2, 294)
    assert begin(Script(), most=1_102, answer_tokens=300).fits(2, 294)


def number(text: str) -> int:
    if not text.isdigit():
        raise Unusable("no number", "no digits")
    return int(text)


def test_a_faulty_answer_is_told_back_once() -> None:
    errors: list[str] = []
    script = Script("one", "2")
    assert settle(begin(script), "count", number, errors) == 2
    assert errors == ["no number", "no digits"]
    assert "- no number\n- no digits\n" in script.last

    script = Script("one", answer("", "refusal"))
    assert settle(begin(script), "count", number, errors) is None
    assert errors[2:] == ["no number", "no digits", "it was a refusal"]


def test_two_conversations_share_an_allowance() -> None:
    script = Script(answer("a", usage=Usage(10, 900)))
    allowance = Allowance(1_000)
    tools = make_tools(script)
    Conversation(tools, "sleep/0/a", "s", allowance).ask("x")
    with pytest.raises(SleepSpent):
        Conversation(tools, "sleep/0/b", "s", allowance).ask("x")
