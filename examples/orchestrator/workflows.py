"""What the orchestrator can do with a message: a few workflows, each a few steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One call of the model; ``remembered``: it decides and plans what is to become memory."""

    step_id: str
    instruction: str
    remembered: bool = False


@dataclass(frozen=True)
class Workflow:
    """Steps, the last of which says the reply; ``used_for`` is what the selector reads."""

    name: str
    used_for: str
    steps: tuple[Step, ...]


ANSWER = Workflow(
    "answer",
    "a question that what is known can answer",
    (
        Step(
            "reply",
            "Answer in a sentence, from what is known alone, or say that you do not know.",
        ),
    ),
)
PLAN = Workflow(
    "plan",
    "work that has to be planned before it begins",
    (
        Step(
            "plan",
            "Plan the work. Answer with JSON alone: "
            '{"decisions": ["what was decided, and why", …], "todos": ["what is to be done", …]}',
            remembered=True,
        ),
        Step("reply", "Tell in one or two sentences what was planned."),
    ),
)
NOTE = Workflow(
    "note",
    "something told that asks for nothing",
    (Step("reply", "Acknowledge the message in a few words."),),
)
WORKFLOWS = {each.name: each for each in (ANSWER, PLAN, NOTE)}


def selector_instruction() -> str:
    """What the model is told that picks a workflow."""
    offered = "\n".join(f"{each.name}: {each.used_for}" for each in WORKFLOWS.values())
    return f"Pick the workflow for the message. Answer with its name alone.\n{offered}"


def picked(answer: str) -> Workflow:
    """The workflow that a model named; ``answer`` where it named none."""
    words = answer.casefold().replace(".", " ").split()
    return next((WORKFLOWS[word] for word in words if word in WORKFLOWS), ANSWER)
