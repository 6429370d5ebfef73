"""Answers of a language model to questions with what memory gives it, and a judge of them.

Every answer is appended to a file as soon as it is there, so that a run can be resumed and people
can read the answers again. Right answers are written to the file, and shown to the judge, when all
questions are answered.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Literal, TypeVar, cast

from benchmarks.answer_sets import Question
from memgraph.errors import InvalidInput, ProviderAnswerInvalid, ProviderError, ProviderRejected
from memgraph.providers.completion import CompletionProvider, completion_provider, object_schema
from memgraph.providers.options import ModelOptions
from memgraph.providers.usage import usage_tally

READER_PROMPT: Final = """\
You answer a question from records of earlier conversations. Use the records alone.

- Each record has a date and says who said it. Work out "yesterday" or "last week" from the date of
  the record, and answer with the date, month or year itself.
- Where records disagree, the latest holds, unless a record is marked as replaced.
- Where the answer is not written down but follows from the records, conclude it.
- Answer in as few words as possible, without an explanation. Lists are complete.
- Where the records do not hold the answer, say "not known"."""

ANSWER_SCHEMA: Final = object_schema(answer={"type": "string"})

JUDGE_PROMPT: Final = """\
You judge whether an answer to a question is right. You get the question, the right answer and the
given answer. Be generous: the given answer may be longer or worded differently. It is CORRECT if it
is about the same thing as the right answer, or for a time about the same date or period, whatever
the format ("March 3rd" and "3 March 2021", "last Tuesday" and the date of that day). It is WRONG if
it names something else, contradicts the right answer, or says that the answer is not known although
the right answer names one.

Answer with JSON: {"verdict": "CORRECT"} or {"verdict": "WRONG"}."""

CORRECT, WRONG = "CORRECT", "WRONG"
VERDICT_SCHEMA: Final = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": [CORRECT, WRONG]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
TIMEOUT_S: Final = 600.0
NOTHING: Final = "(no records)"

Progress = Callable[[str, int, int], None]
Result = TypeVar("Result")
Work = TypeVar("Work")


@dataclass(frozen=True, slots=True)
class Readers:
    """The language models, and the file of their answers.

    Attributes:
        reader, judge: as ``memory.llm.provider``; empty: nothing is answered, or judged.
        at_once: questions at the same time, 1 to 32.
        api_base: the address of both; None: litellm's default.
        timeout_s: of one question.
    """

    answers: Path
    reader: str = ""
    judge: str = ""
    at_once: int = 4
    api_base: str | None = None
    timeout_s: float = TIMEOUT_S

    def options(self) -> ModelOptions:
        return {"api_base": self.api_base, "timeout_s": self.timeout_s}


@dataclass(frozen=True, slots=True)
class Key:
    """Names a question, by its number in its talk from 1, and the source of the records."""

    set: str
    talk: str
    number: int
    source: str


@dataclass(frozen=True, slots=True)
class Asked:
    key: Key
    question: Question
    block: str


@dataclass(slots=True)
class Record:
    """A line of the file: a question, what the reader got, its answer and the verdict.

    Attributes:
        tokens: of the block.
        tokens_in, tokens_out: as the reader's server counts them; None: it does not.
        gold: the right answer; None until all questions are answered.
        verdict: None: not judged.
        error: the code of the error for which there is no answer or verdict.
    """

    key: Key
    question: str
    category: str
    block: str
    reader: str
    tokens: int = 0
    answer: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    gold: str | None = None
    judge: str | None = None
    verdict: Literal["CORRECT", "WRONG"] | None = None
    error: str | None = None

    def as_line(self) -> str:
        values = dataclasses.asdict(self)
        return json.dumps({**values.pop("key"), **values}, ensure_ascii=False) + "\n"

    @classmethod
    def of_line(cls, line: str) -> Record:
        """Raises ValueError, LookupError or TypeError: the line is no record."""
        values = json.loads(line)
        key = Key(**{one.name: values.pop(one.name) for one in dataclasses.fields(Key)})
        record = cls(key=key, **values)
        if record.verdict not in (CORRECT, WRONG, None):
            raise ValueError(f"no verdict: {record.verdict!r}")
        return record


@dataclass(slots=True)
class AnswerFile:
    """The records of a file. A later line of the same question replaces an earlier one."""

    path: Path
    records: dict[Key, Record] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> AnswerFile:
        """Return what the file holds; an incomplete last line is left out.

        Raises:
            InvalidInput: it cannot be read, or a line is no record.
        """
        try:
            lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"cannot read {path}", path=str(path)) from error
        if lines and not lines[-1].endswith("\n"):
            del lines[-1]
        found = cls(path)
        for number, line in enumerate(lines, start=1):
            try:
                record = Record.of_line(line)
            except (ValueError, LookupError, TypeError) as error:
                raise InvalidInput(
                    f"line {number} of {path} is no answer", path=str(path)
                ) from error
            found.records[record.key] = record
        return found

    @contextlib.contextmanager
    def appending(self) -> Iterator[Callable[[Record], None]]:
        """Yield a function that stores a record at once; write the file anew in the end."""
        self.rewrite()
        try:
            with self.path.open("a", encoding="utf-8") as file:
                yield lambda record: self._append(file, record)
        finally:
            self.rewrite()

    def _append(self, file: IO[str], record: Record) -> None:
        self.records[record.key] = record
        file.write(record.as_line())
        file.flush()

    def rewrite(self) -> None:
        """Write one line for each question, in order."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(f"{self.path.name}.part")
        ordered = sorted(self.records.values(), key=lambda one: dataclasses.astuple(one.key))
        partial.write_text("".join(record.as_line() for record in ordered), "utf-8")
        partial.replace(self.path)


def run(
    readers: Readers,
    asked: Sequence[Asked],
    count: Callable[[str], int],
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Have questions answered that have no answer yet, then judge the answers; return `figures`.

    Raises:
        InvalidInput: as `check`.
        ProviderRejected: the key, the model or the request is not accepted.
    """
    file = check(readers)
    if readers.reader:
        _answer_all(readers, file, asked, count, progress)
        for each in asked:
            file.records[each.key].gold = each.question.answer
        file.rewrite()
    if readers.judge:
        _judge_all(readers, file, progress)
    return figures(file.records.values())


def check(readers: Readers) -> AnswerFile:
    """Return the file of the answers, if the models can work on it.

    Raises:
        InvalidInput: it cannot be read, is of another reader, or is empty and there is no reader.
        InvalidConfig: the name of a model is invalid, or the time limit out of range.
    """
    file = AnswerFile.read(readers.answers)
    if readers.reader:
        completion_provider(readers.reader, **readers.options())
        others = {record.reader for record in file.records.values()} - {readers.reader}
        if others:
            raise InvalidInput(
                f"{file.path} holds answers of {min(others)}, not of {readers.reader}",
                path=str(file.path),
            )
    elif not file.records:
        raise InvalidInput(f"{file.path} holds no answers", path=str(file.path))
    if readers.judge:
        completion_provider(readers.judge, **readers.options())
    return file


def _answer_all(
    readers: Readers,
    file: AnswerFile,
    asked: Sequence[Asked],
    count: Callable[[str], int],
    progress: Progress,
) -> None:
    model = completion_provider(readers.reader, **readers.options())
    answered = {key for key, record in file.records.items() if record.answer is not None}
    open_questions = [each for each in asked if each.key not in answered]

    def answer(each: Asked) -> Record:
        record = Record(
            each.key,
            each.question.text,
            each.question.category,
            each.block,
            readers.reader,
            count(each.block),
        )
        return _answered(model, record)

    with file.appending() as append:
        for record in _at_once(readers, "answering", answer, open_questions, progress):
            append(record)


def _answered(model: CompletionProvider, record: Record) -> Record:
    """Raises ProviderRejected."""
    message = reader_message(record.block, record.question)
    try:
        with usage_tally() as usage:
            answer = model.complete_json(READER_PROMPT, message, ANSWER_SCHEMA)
    except ProviderRejected:
        raise
    except ProviderError as error:
        return dataclasses.replace(record, error=error.code)
    text = answer.get("answer") if isinstance(answer, dict) else None
    if not isinstance(text, str) or not text.strip():
        return dataclasses.replace(record, error=ProviderAnswerInvalid.code)
    return dataclasses.replace(
        record,
        answer=text.strip(),
        tokens_in=usage.tokens_in or None,
        tokens_out=usage.tokens_out or None,
    )


def reader_message(block: str, question: str) -> str:
    """Return what the reader gets after `READER_PROMPT`."""
    return f"{block.strip() or NOTHING}\n\nQuestion: {question}"


def judge_message(record: Record) -> str:
    """Return what the judge gets after `JUDGE_PROMPT`."""
    return (
        f"Question: {record.question}\nRight answer: {record.gold}\nGiven answer: {record.answer}"
    )


def _judge_all(readers: Readers, file: AnswerFile, progress: Progress) -> None:
    """Judge all answers; beside a reader those alone that this judge has not judged yet.

    Raises:
        InvalidInput: an answer has no right answer beside it.
        ProviderRejected: the key, the model or the request is not accepted.
    """
    answered = [record for record in file.records.values() if record.answer is not None]
    if any(record.gold is None for record in answered):
        raise InvalidInput(
            f"{file.path} holds no right answers: finish it with --reader", path=str(file.path)
        )
    model = completion_provider(readers.judge, **readers.options())
    unjudged = [
        record
        for record in answered
        if not readers.reader or record.verdict is None or record.judge != readers.judge
    ]
    with file.appending() as append:
        judged = _at_once(
            readers, "judging", lambda record: _judged(model, record), unjudged, progress
        )
        for record in judged:
            append(record)


def _judged(model: CompletionProvider, record: Record) -> Record:
    """Raises ProviderRejected."""
    blank = dataclasses.replace(record, judge=model.name, verdict=None, error=None)
    try:
        answer = model.complete_json(JUDGE_PROMPT, judge_message(record), VERDICT_SCHEMA)
    except ProviderRejected:
        raise
    except ProviderError as error:
        return dataclasses.replace(blank, error=error.code)
    verdict = answer.get("verdict") if isinstance(answer, Mapping) else None
    if verdict not in (CORRECT, WRONG):
        return dataclasses.replace(blank, error="no_verdict")
    return dataclasses.replace(blank, verdict=cast(Literal["CORRECT", "WRONG"], verdict))


def _at_once(
    readers: Readers,
    step: str,
    action: Callable[[Work], Result],
    given: Sequence[Work],
    progress: Progress,
) -> Iterator[Result]:
    """Yield the results as they come. At an error yield those that are there, and raise it."""
    progress(step, 0, len(given))
    yielded: set[Future[Result]] = set()
    with ThreadPoolExecutor(readers.at_once, thread_name_prefix="memgraph-bench") as pool:
        futures = [pool.submit(action, each) for each in given]
        try:
            for future in as_completed(futures):
                yield future.result()
                yielded.add(future)
                progress(step, len(yielded), len(given))
        except ProviderError:
            pool.shutdown(wait=True, cancel_futures=True)
            for future in futures:
                if future not in yielded and not future.cancelled() and not future.exception():
                    yield future.result()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def figures(records: Iterable[Record]) -> dict[str, Any]:
    """Return by set and source the figures of the answers, over all and ``by_category``.

    Returns:
        ``reader``, ``judges`` (whoever gave a verdict), ``questions``, ``right``, ``wrong``,
        ``unjudged``, ``unanswered``, ``share`` (right ones of all questions), ``tokens`` (mean of
        the blocks).
    """
    found: dict[str, dict[str, Any]] = {}
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.key.set, record.key.source), []).append(record)
    for (name, source), group in groups.items():
        categories = dict.fromkeys(record.category for record in group)
        found.setdefault(name, {})[source] = {
            "reader": group[0].reader,
            "judges": sorted({each.judge for each in group if each.judge}),
            **_shares(group),
            "by_category": {
                one: _shares([record for record in group if record.category == one])
                for one in categories
            },
        }
    return found


def _shares(records: Sequence[Record]) -> dict[str, Any]:
    right = sum(record.verdict == CORRECT for record in records)
    wrong = sum(record.verdict == WRONG for record in records)
    unanswered = sum(record.answer is None for record in records)
    return {
        "questions": len(records),
        "right": right,
        "wrong": wrong,
        "unjudged": len(records) - right - wrong - unanswered,
        "unanswered": unanswered,
        "share": round(right / len(records), 4),
        "tokens": round(sum(record.tokens for record in records) / len(records)),
    }
