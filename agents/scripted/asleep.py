"""FIXED: how the scripted agent learns: it counts what failed, and writes one thing at a time.

It knows what to write for each kind of mission. What it writes first is too narrow, which it finds out and
mends; what is never used it takes away again.
"""

import json
import re
from collections import Counter
from typing import Any

from agents.scripted.asked import Asked, section
from agents.scripted.awake import ADVICE
from agents.scripted.missions import VERBS, read_mission
from agents.scripted.sources import renamed, sources

_PROGRAM = """\
import collections

counts = collections.Counter()
for episode in episodes:
    for verb in ("go to", "pick up", "open", "put"):
        if verb + " " in episode["goal"]:
            counts[verb, episode["success"]] += 1
for (verb, success), count in sorted(counts.items()):
    print(f"{verb}: {count} {'reached' if success else 'missed'}")
"""
_ENOUGH, _WELL = 0.6, 0.95
"""Of the episodes with skills; where fewer reach their goals, what there is comes before what is missing, and
is mended even where nothing is missing."""
_REPEAT = '''\
def repeat(env, action, times):
    """Take an action so many times, or until it earns a reward. Returns how often it was taken."""
    for count in range(times):
        env.step(action)
        if env.reward:
            return count + 1
    return times
'''


def keep_codebook(asked: Asked) -> str:
    """speedrunner and speedrunner_no_cl: a program where programs are run, then one lesson as edits."""
    book = section(asked.first, "The codebook as it stands")
    if asked.benchmark != "babyai":
        return _edits("one thing for all worlds", [] if "def repeat(" in book else [_add("repeat", _REPEAT)])
    programs = "A program is Python in one block" in asked.system
    if programs and not asked.answers:
        return f"First I count what was missed.\n\n```python\n{_PROGRAM}```"
    missed = Counter(
        {verb: int(count) for verb, count in re.findall(r"^([a-z ]+): (\d+) missed", asked.last, re.M)}
    )
    if not programs or "no room for another program" in asked.last:
        missed = Counter(
            verb for goal, reached in _episodes(asked.first) if not reached for verb in _verbs(goal)
        )
    return _next_lesson(book, missed)


def write_guide(asked: Asked) -> str:
    """opo: the guide, with advice for one more kind of mission."""
    guide = section(asked.first, "The guide as it stands")
    lines = [] if guide == "It is empty." else guide.splitlines()
    missed = Counter(verb for goal, reached in _episodes(asked.first) if not reached for verb in _verbs(goal))
    missing = [verb for verb, _ in missed.most_common() if ADVICE[verb] not in lines]
    if missing:
        lines.append(ADVICE[missing[0]])
        reason = f"{missed[missing[0]]} episodes about `{missing[0]}` missed their goal."
    else:
        lines = lines or ["Turn around on the spot when nothing of use is in view."]
        reason = "The guide says what there is to say."
    return "<reason>{}</reason>\n<guide>\n{}\n</guide>".format(reason, "\n".join(lines))


def find_skills(asked: Asked) -> str:
    """asi: the skills that a successful episode lacks, and the episode as it would go with them."""
    known = re.findall(r"^skill (\w+)\(", asked.first, re.MULTILINE)
    ((goal, _),) = _episodes(asked.first) or [("", True)]
    parts = read_mission(goal) if asked.benchmark == "babyai" else []
    new = [name for name in dict.fromkeys(part.skill for part in parts) if name not in known]
    if "put_next" in new and "pick_up" not in known and "pick_up" not in new:
        new.insert(0, "pick_up")
    if not parts or not new:
        return _json({"reason": "nothing new is to be found here", "skills": []})
    written = sources("babyai_skills")
    skills = [{"name": name, "source": written[name]} for name in new]
    if not known:  # its helpers come with the very first
        skills[0]["source"] = "\n\n".join([*_helpers().values(), skills[0]["source"]])
    replay = [part.call for part in parts]
    if new[0] == "pick_up" and parts[0].verb == "put":  # each new skill has to be called
        replay.insert(0, parts[0]._replace(verb="pick up", things=parts[0].things[:1]).call)
    reason = f"whoever has to {' and '.join(part.verb for part in parts)} can call it"
    return _json({"reason": reason, "skills": skills, "replay": replay})


def _next_lesson(book: str, missed: Counter[str]) -> str:
    """The edits of a sleep: a beginning, a mended search, one more skill, or something useless less."""
    written = sources("babyai_skills")
    missing = [verb for verb, _ in missed.most_common() if f"def {VERBS[verb]}(" not in book]
    if "def _begin(" not in book:
        verb = missing[0] if missing else "go to"
        helpers = _helpers() | {
            "_search": renamed(written["_search_at_first"], "_search_at_first", "_search")
        }
        edits = [_add(name, source) for name, source in helpers.items()]
        edits += [_add(name, written[name]) for name in _skills_for(verb, book)]
        edits.append(_add("look_around", written["look_around"]))
        return _edits(f"{missed[verb]} episodes missed a goal to {verb}", edits)
    called, reached = _use(book)
    narrow = written["_search"] not in book
    if narrow and called and reached < (_ENOUGH if missing else _WELL) * called:
        edit = {**_add("_search", written["_search"]), "op": "replace", "reason": "it must look around"}
        return _edits(f"only {reached} of {called} episodes with skills reached their goals", [edit])
    if missing:
        verb = missing[0]
        edits = [_add(name, written[name]) for name in _skills_for(verb, book)]
        return _edits(f"{missed[verb]} episodes missed a goal to {verb}", edits)
    if re.search(r"^def look_around\(.*?^# never called", book, re.M | re.S) and not narrow:
        gone = {"op": "delete", "name": "look_around", "reason": "nobody calls it"}
        return _edits("what is never called only takes room", [gone])
    return _edits("the codebook does what is asked for", [])


def _skills_for(verb: str, book: str) -> list[str]:
    """The skill for a verb, after one that it calls."""
    wanted = ["pick_up", "put_next"] if verb == "put" else [VERBS[verb]]
    return [name for name in wanted if f"def {name}(" not in book]


def _helpers() -> dict[str, str]:
    found = sources("babyai_skills")
    return {name: found[name] for name in found if name.startswith("_") and name != "_search_at_first"}


def _use(book: str) -> tuple[int, int]:
    """Episodes in which skills were called, and how many of them reached the goal, added up over skills."""
    found = re.findall(r"; (\d+) of (\d+) episodes with it reached the goal$", book, re.MULTILINE)
    return sum(int(called) for _, called in found), sum(int(reached) for reached, _ in found)


def _episodes(text: str) -> list[tuple[str, bool]]:
    """(goal, whether it was reached) of the episodes that a prompt tells of."""
    found = re.findall(r"^Episode \d+ \(.*?\): ([a-z ]+), score .*\nGoal: (.*)$", text, re.MULTILINE)
    return [(goal, ending == "success") for ending, goal in found]


def _verbs(goal: str) -> list[str]:
    return [part.verb for part in read_mission(goal)]


def _add(name: str, source: str) -> dict[str, Any]:
    return {"op": "add", "name": name, "reason": f"{name} was missing", "source": source.splitlines()}


def _edits(reason: str, edits: list[dict[str, Any]]) -> str:
    return _json({"reason": reason, "edits": edits})


def _json(value: dict[str, Any]) -> str:
    return f"```json\n{json.dumps(value, indent=1)}\n```"
