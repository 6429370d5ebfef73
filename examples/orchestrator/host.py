"""The orchestrator: a message in, a workflow picked and run, a reply out; memory at every step.

Every call of ``self._hooks`` is a place where a host of your own would call its memory. None of
them raises because the memory failed: what it had to do without stands in ``warnings``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from examples.orchestrator.channels import Message
from examples.orchestrator.events import Show
from examples.orchestrator.models import Model, ModelFailed
from examples.orchestrator.workflows import Step, picked, selector_instruction
from memgraph import MemoryHooks, MemoryType
from memgraph.ids import short_id
from memgraph.model.context import ContextRequest
from memgraph.model.enums import Scope
from memgraph.model.turns import (
    DiagnosisFinding,
    EvidenceBundle,
    StepContext,
    TurnWarning,
    WriteBackResult,
)

SORRY = "I cannot answer at the moment."
NOTHING_KNOWN = "unknown"
_DIAGNOSE = (
    "Say in one or two sentences why, from the evidence alone, and put the short ids of the "
    "memories it rests on, #…, in brackets. Answer with the one word "
    f"{NOTHING_KNOWN} where it does not tell."
)
_CITED = re.compile(r"\s*\[#\w+\]")
_ADDRESSED = re.compile(r"@(?P<name>[\w.-]+) .+")  # @bakery When are the rolls ready?


class Host:
    """Answers messages, one after the other; ``show`` is told of everything that happens."""

    def __init__(
        self, hooks: MemoryHooks, model: Model, show: Show, *, task_id: str, project_id: str
    ) -> None:
        self._hooks = hooks
        self._model = model
        self._show = show
        self._place: dict[str, Any] = {"task_id": task_id, "project_id": project_id}
        self.unanswered = 0

    def answer(self, message: Message) -> str:
        """The reply to a message."""
        self._show("message", channel=message.channel, speaker=message.speaker, text=message.text)
        command, _, rest = message.text.partition(" ")
        try:
            if command == "!why":
                reply = self._diagnose(message, rest.strip())
            elif command == "!done":
                reply = self._finish(message)
            else:
                reply = self._turn(message)
        except ModelFailed as error:
            self._show("model_failed", text=str(error))
            self.unanswered += 1
            reply = SORRY
        self._show("reply", channel=message.channel, text=reply)
        self._keep_reply(message, reply)
        return reply

    def _turn(self, message: Message) -> str:
        """The message is kept, a workflow picked with what is known, and run."""
        addressed = _ADDRESSED.fullmatch(message.text)
        turn = self._hooks.on_message(
            message.text,
            conversation_id=message.channel,
            speaker=message.speaker,
            turn_id=message.message_id,
            orchestrator=addressed["name"] if addressed else None,
            **self._place,
        )
        self._warn(turn.warnings)
        if turn.acknowledged:
            self._show("captured", memory_id=turn.episode_id, message_id=message.message_id)
        system = f"{selector_instruction()}\n\n{turn.prompt}"
        workflow = picked(self._model.ask("select", system, message.text))
        self._show(
            "selected", workflow=workflow.name, bulletin=bool(turn.bulletin), saw=_memories(turn)
        )
        output = ""
        for step in workflow.steps:
            output = self._step(step, message, output)
        return output

    def _step(self, step: Step, message: Message, before: str) -> str:
        """One step: its prompt gets what is known, and what it decided is remembered."""
        ids = {**self._ids(message), "step_id": step.step_id}
        # A prompt here holds nothing of what was said before, so that a step recalls that as well.
        known = self._hooks.on_step(message.text, exclude_conversation=False, **ids)
        self._warn(known.warnings)
        system = "\n\n".join(filter(None, (step.instruction, known.prompt, before)))
        output = self._model.ask(step.step_id, system, message.text)
        self._show("step", step=step.step_id, output=output, recalled=_memories(known))
        if step.remembered:
            self._tell(self._hooks.on_step_output(output, tier=Scope.SESSION, **ids), message)
        return output

    def _diagnose(self, message: Message, question: str) -> str:
        """Why something is as it is, from the graph of memories; what was found is remembered."""
        evidence = self._hooks.on_diagnostics(question, **self._place)
        self._warn(evidence.warnings)
        self._show("evidence", **_as_shown(evidence))
        found = self._model.ask("diagnose", f"{_DIAGNOSE}\n\n{evidence.text}", question)
        if found.strip(" .").casefold() == NOTHING_KNOWN:
            return "Nothing in the memory tells why."
        cited = tuple(each for each in evidence.memory_ids if f"[#{short_id(each)}]" in found)
        finding = DiagnosisFinding(content=_CITED.sub("", found), caused_by=cited or None)
        written = self._hooks.record_findings([finding], evidence=evidence, **self._ids(message))
        self._tell(written, message)
        return f"{finding.content} ({len(cited)} of {len(evidence.items)} memories tell so.)"

    def _finish(self, message: Message) -> str:
        """The task is over: what it decided and found goes to the project, the rest is cleared."""
        request = ContextRequest(types=(MemoryType.DECISION, MemoryType.OBSERVATION))
        known = self._hooks.on_step("", step_id="done", request=request, **self._ids(message))
        self._warn(known.warnings)
        items = known.context.items if known.context else ()
        worth_it = [each.memory_id for each in items if each.tier is Scope.SESSION]
        ended = self._hooks.end_task(promote=worth_it, **self._place)
        self._warn(ended.warnings)
        self._show("task_ended", promoted=ended.promoted, cleared=ended.cleared)
        return f"Done. {len(ended.promoted)} kept for the project, {ended.cleared} cleared."

    def _keep_reply(self, message: Message, reply: str) -> None:
        """What the orchestrator said belongs to the conversation as well."""
        said = {"content": reply, "speaker": "assistant", "turn_id": f"{message.message_id}-reply"}
        project = self._place["project_id"]
        where: dict[str, Any] = {"conversation_id": message.channel, "project_id": project}
        self._warn(self._hooks.on_transcript([said], **where).warnings)

    def _ids(self, message: Message) -> dict[str, Any]:
        """One message, one run: a message that is answered again writes the same again."""
        run = _run_of(message)
        return {"conversation_id": message.channel, "workflow_run_id": run, **self._place}

    def _tell(self, written: WriteBackResult, message: Message) -> None:
        self._warn(written.warnings)
        rejected = [each.model_dump() for each in written.rejected]
        memory_ids = list(written.memory_ids)
        self._show("remembered", run=_run_of(message), memory_ids=memory_ids, rejected=rejected)

    def _warn(self, warnings: Iterable[TurnWarning]) -> None:
        for warning in warnings:
            self._show("warning", code=warning.code, text=warning.text)


def _run_of(message: Message) -> str:
    return f"run-{message.message_id}"


def _memories(known: StepContext) -> list[dict[str, str]]:
    items = known.context.items if known.context else ()
    return [{"memory_id": each.memory_id, "text": each.text} for each in items]


def _as_shown(evidence: EvidenceBundle) -> dict[str, object]:
    items = [
        {
            "memory_id": item.memory.memory_id,
            "text": item.memory.content,
            "source_type": item.source.source_type,
            "workflow_run_id": item.source.workflow_run_id,
            "step_id": item.source.step_id,
            "citation": item.citation,
        }
        for item in evidence.items
    ]
    return {"question": evidence.question, "items": items, "cut": bool(evidence.cut_reasons)}
