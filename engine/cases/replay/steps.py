"""Step by step (RAISE and its baselines): sub-questions, searches, what T kept, prompts, from the kept replies.

What the model wrote is an input; every search is made again in the collection as it is now.
"""

from __future__ import annotations

from typing import Any

from engine.analyses.steps import means_for
from engine.cases.replay.attribution import settings_of
from engine.cases.replay.floors import embedding_floor
from engine.cases.replay.outcome import (
    COSTS,
    Json,
    Kind,
    Outcome,
    Tools,
    less,
)
from engine.cases.replay.replies import Repeating, Reply
from engine.cases.replay.retrieval import changed_since
from engine.core.errors import GroundworkError
from engine.core.settings import Reasoning, Settings
from engine.core.values import Analysis, Answer, Case
from engine.methods.raise_.solve import solve
from engine.methods.raise_.values import Problem, Solution, method_of

# Beside costs: the tokens read and written, and the replies themselves.
LEFT_OUT = COSTS - {"notes"} | {"read", "written", "reply", "finished"}


def given(result: Json) -> Json:
    """The replies with the hashes of their prompts, the method, and which passages were found."""
    solution = Solution.from_dict(result)
    replies = (Reply.of(Answer(text=a.reply, finished=a.finished), a.prompt) for a in solution.calls)
    found = (hit.passage.id for step in solution.steps if step.search for hit in step.search.hits)
    return {
        "replies": [reply.to_dict() for reply in replies],
        "method": solution.method,
        "finished": solution.state in ("done", "unparsed"),
        "passages": list(dict.fromkeys(found)),
    }


def compared(result: Json) -> Any:
    """All but costs and inputs."""
    return less(result, LEFT_OUT)


def again(case: Case, analysis: Analysis, tools: Tools) -> Outcome:
    """The run again; where a prompt is another one than then, it ends there."""
    asked, stamp = analysis.result, analysis.stamp
    if not asked.get("finished"):
        return Outcome(why="the run was stopped before its end; let it finish, then replay it")
    stamped = dict(stamp.settings.get("reasoning", {}))
    collection = tools.collection(str(stamped.pop("corpus", "") or case.corpus))
    changed = changed_since(collection, asked["passages"])
    if changed:
        return Outcome(why=changed)
    own = settings_of(stamp)
    reasoning = Reasoning.from_dict({"demonstrations": 0, **stamped})  # older runs were shown none
    settings = Settings(prompting=own.prompting, decoding=own.decoding, reasoning=reasoning)
    repeating = Repeating([Reply.from_dict(reply) for reply in asked["replies"]], name=stamp.model)
    method = method_of(asked["method"])
    grown: list[Solution] = []
    why = ""
    try:
        means = means_for(collection, repeating, settings, method)
        solve(Problem(question=case.question, options=case.options), method, means, None, grown.append)
    except GroundworkError as error:
        why = str(error)
    if not grown:
        return Outcome(why=why)
    texts = [hit.passage.text for step in grown[-1].steps if step.search for hit in step.search.hits]
    floor = embedding_floor(collection.embedder, case.question, texts)
    return Outcome(values=compared(grown[-1].to_dict()), floor=floor, why=why)


KIND = Kind(again, given, compared)
