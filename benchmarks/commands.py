"""Measuring: ``memgraph bench``, its subcommands and what they print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from memgraph.surfaces.cli.builder import make_group
from memgraph.surfaces.cli.invocation import CommandResult, choice, invocation
from memgraph.surfaces.cli.screen import Screen, stages


class Half(StrEnum):
    """Which half of a retrieval set is asked."""

    EVEN = "even"
    ODD = "odd"


class NamedBy(StrEnum):
    """What can be scored at finding entities."""

    REGEX = "regex"
    SPACY = "spacy"
    LLM = "llm"
    ACCURATE = "accurate"


def labels(
    context: typer.Context,
    data: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Holds entities*.jsonl.",
        ),
    ],
    provider: Annotated[
        NamedBy,
        choice(NamedBy, "--provider", text="What finds the entities, as the settings have it."),
    ] = NamedBy.REGEX,
) -> CommandResult:
    """Score entities against labelled lines."""
    from benchmarks import labels as bench

    if provider is NamedBy.REGEX:
        return _measured(bench.run(data))
    with invocation(context).service() as service:
        return _measured(bench.run(data, provider.value, service.settings()))


StorageUrl = Annotated[
    str,
    typer.Option(
        "--storage",
        metavar="URL",
        help="An empty database of PostgreSQL, as memory.storage.url; what is made there stays.",
        show_default=False,
    ),
]


def locomo(
    context: typer.Context,  # noqa: ARG001 - every command has it
    data: Annotated[
        Path,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="LoCoMo's JSON."),
    ],
    storage: StorageUrl = "",
) -> CommandResult:
    """Measure recall on LoCoMo's conversations: share of the marked evidence that is found."""
    from benchmarks import locomo as bench

    with stages("measuring") as told:
        return _measured(bench.run(data, lambda stage: told(stage, 0, 1), storage=storage))


def marks(
    context: typer.Context,  # noqa: ARG001 - every command has it
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False, help="Labelled changes to read instead."
        ),
    ] = None,
    unlocked: Annotated[
        bool, typer.Option("--open", help="Measure on the briefs that the training has read.")
    ] = False,
    examples: Annotated[int, typer.Option(min=0, help="Wrong and missed pairs to list.")] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Measure so many pairs and talks only.")
    ] = None,
) -> CommandResult:
    """Measure which changes are marked, on pairs and talks of briefs that no training has read."""
    from benchmarks import marks as bench

    with stages("measuring") as told:
        found = bench.run(told, data=data, unlocked=unlocked, examples=examples, limit=limit)
    return _measured(found)


def retrieval(
    context: typer.Context,
    data: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A retrieval set, one store a line; may be given more than once.",
        ),
    ],
    half: Annotated[
        Half | None,
        choice(
            Half,
            "--half",
            text="Ask every second store alone, or every second question of a single one.",
        ),
    ] = None,
    floor: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Also measure what a relevance floor loses, and lets through."
        ),
    ] = None,
    storage: StorageUrl = "",
) -> CommandResult:
    """Measure recall on retrieval sets beside FTS5, static vectors and their fusion."""
    from benchmarks import retrieval as bench

    with invocation(context).stages("measuring") as told:
        found = bench.run(
            data, half=half and half.value, floor=floor, progress=told, storage=storage
        )

    def show(screen: Screen) -> None:
        for name, row in found["sets"].items():
            title = f"{name}, {row['questions']} questions"
            rows = [
                [method, *(_cell(row[method][one]) for one in bench.MEASURES)]
                for method in bench.METHODS
            ]
            screen.table((title, *bench.MEASURES), rows)
            screen.fields([(one, _cell(row[one])) for one in ("lost@20", "foreign") if one in row])
            screen.line()

    return CommandResult(found, show)


def answers(
    context: typer.Context,  # noqa: ARG001 - every command has it
    data: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="LoCoMo's JSON, a retrieval set, or talks in which facts change; may be given more"
            " than once.",
            show_default=False,
        ),
    ] = None,
    sources: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SOURCE,SOURCE",
            help="Of block, recall, fusion, whole: what the reader gets. Default: all are measured,"
            " the reader gets the block.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1, help="Tokens of the block; default: the product's.", show_default=False
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="The first so many questions of each talk alone.", show_default=False
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Where answers are kept; those that are there are not asked for again.",
            show_default=False,
        ),
    ] = None,
    reader: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="The language model that answers, e.g. litellm/openai/gpt-4o.",
            show_default=False,
        ),
    ] = "",
    judge: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="The language model that judges the answers; without --reader all of the file.",
            show_default=False,
        ),
    ] = "",
    writer: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="The language model that consolidates; without it none does.",
            show_default=False,
        ),
    ] = "",
    facts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Where the facts are written that --writer stored.",
            show_default=False,
        ),
    ] = None,
    api_base: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of the models.", show_default=False),
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=1.0, help="Seconds that a model may take.")
    ] = 600.0,
    at_once: Annotated[
        int, typer.Option(min=1, max=32, help="Questions asked at the same time.")
    ] = 4,
) -> CommandResult:
    """Measure the evidence that reaches the prompt, and the answers of a language model from it."""
    from benchmarks import answers as bench
    from benchmarks.reader import Readers

    if (reader or judge) and answers is None:
        raise typer.BadParameter("--reader and --judge need --answers")
    if not data and (reader or answers is None):
        raise typer.BadParameter("--data is missing")
    readers = None
    if answers is not None:
        readers = Readers(answers, reader, judge, at_once, api_base, timeout_s)
    chosen = sources or (bench.BLOCK if reader else ",".join(bench.SOURCES))
    with stages("measuring", lines_every_s=30.0) as told:
        found = bench.run(
            data or [],
            sources=chosen.split(","),
            budget=budget,
            limit=limit,
            readers=readers,
            writer=bench.Writer(writer, api_base, timeout_s, facts) if writer else None,
            progress=told,
        )
    return CommandResult(found, lambda screen: _show_answers(found, screen))


_BY_CATEGORY = ("questions", "evidence", "complete", "tokens", "tokens_max")
_ANSWERS = ("questions", "right", "wrong", "unjudged", "unanswered", "share", "tokens")


def _show_answers(result: Mapping[str, Any], screen: Screen) -> None:
    from benchmarks.answers import MEASURES, SOURCES

    for name, found in result["sets"].items():
        sources = {one: found[one] for one in SOURCES if one in found}
        title = f"{name}, {found['questions']} questions"
        screen.table((title, *MEASURES), _rows(sources, MEASURES))
        screen.line()
        for source, figures in sources.items():
            rows = _rows(figures["by_category"], _BY_CATEGORY)
            screen.table((f"{name}, {source}", *_BY_CATEGORY), rows)
            screen.line()
        if changes := {one: each["changes"] for one, each in sources.items() if "changes" in each}:
            columns = tuple(next(iter(changes.values())))
            screen.table((f"{name}, what has changed", *columns), _rows(changes, columns))
            screen.line()
        if "consolidation" in found:
            screen.fields([(one, _cell(value)) for one, value in found["consolidation"].items()])
            screen.line()
    for name, found in result.get("answers", {}).items():
        for source, figures in found.items():
            rows = _rows({**figures["by_category"], "all": figures}, _ANSWERS)
            screen.table((f"{name}, answers from {source}", *_ANSWERS), rows)
            screen.fields([(one, str(figures[one])) for one in ("reader", "judges")])
            screen.line()
    screen.fields([(one, str(result[one])) for one in ("tokenizer", "budget")])


def _rows(groups: Mapping[str, Mapping[str, Any]], columns: Sequence[str]) -> list[list[str]]:
    return [[name, *(_cell(group[one]) for one in columns)] for name, group in groups.items()]


def ablation(
    context: typer.Context,  # noqa: ARG001 - every command has it
    data: Annotated[
        Path,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="LoCoMo's JSON."),
    ],
    histories: Annotated[
        int,
        typer.Option(
            min=0, max=300, help="Histories of facts that change; 0: conversations alone."
        ),
    ] = 60,
) -> CommandResult:
    """Measure recall without each of its legs and modifiers, and with plain fusion."""
    from benchmarks import ablation as bench

    with stages("measuring") as told:
        found = bench.run(data, histories, lambda stage: told(stage, 0, 1))

    def show(screen: Screen) -> None:
        for title, rows in found.items():
            if rows:
                columns = list(rows[bench.WHOLE])
                screen.table(
                    (title, *columns),
                    [[name, *(_cell(row[one]) for one in columns)] for name, row in rows.items()],
                )

    return CommandResult(found, show)


def staleness(
    context: typer.Context,  # noqa: ARG001 - every command has it
    histories: Annotated[int, typer.Option(min=1, help="Number of histories, up to 300.")] = 120,
    seed: Annotated[int, typer.Option(help="Another seed, other histories.")] = 1,
    apart: Annotated[
        bool, typer.Option("--apart", help="Every history in an orchestrator of its own.")
    ] = False,
) -> CommandResult:
    """Measure whether what holds now is found before what held once."""
    from benchmarks import staleness as bench

    with stages("measuring") as told:
        found = bench.run(histories, seed, apart=apart, progress=lambda stage: told(stage, 0, 1))

    def show(screen: Screen) -> None:
        measures = (*bench.MEASURES, "questions")
        groups = {**found["by_kind"], **found["by_wording"], "all": found}
        rows = [[name, *(_cell(each[one]) for one in measures)] for name, each in groups.items()]
        screen.table(("histories", *measures), rows)
        screen.line()
        screen.fields(_flat({name: found[name] for name in bench.COUNTS}, ""))
        if failures := found["failures"]:
            screen.line()
            columns = ("history", "kind", "mode", "question", "failed", "shown")
            screen.table(columns, [[_told(each[one]) for one in columns] for each in failures])

    return CommandResult(found, show)


def _told(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def latency(
    context: typer.Context,  # noqa: ARG001 - every command has it
    sizes: Annotated[str, typer.Option(metavar="N,N", help="Numbers of memories.")] = "10000",
    rounds: Annotated[int, typer.Option(min=1, help="Measurements of each kind.")] = 100,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            file_okay=False,
            help="Keep the loaded memories here, and do not load again what is here already.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", file_okay=False, help="Draw latency.svg there."),
    ] = None,
) -> CommandResult:
    """Measure speed, memory and disk beside plain SQL, starts, a server, and the worst cases."""
    from benchmarks import latency as bench, latency_report

    wanted = _sizes(sizes)
    with latency_report.told_progress(wanted) as told:
        found = bench.run(wanted, told, rounds=rounds, keep=keep)
    if plot is not None:
        from benchmarks import latency_curve

        found["plots"] = [str(latency_curve.draw(found, plot))]
    return CommandResult(found, lambda screen: latency_report.show(found, screen))


def life(
    context: typer.Context,  # noqa: ARG001 - every command has it
    sessions: Annotated[
        int, typer.Option(min=1, max=100_000, help="Sessions of 20 turns.")
    ] = 1_000,
    facts: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Facts that decay looks at.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(help="Another seed, other sessions.")] = 1,
) -> CommandResult:
    """Measure how long consolidation and decay take without a model, and the memory they need."""
    from benchmarks import life as bench

    with stages("measuring") as told:
        return _measured(bench.run(sessions, facts, seed, told))


def turns(
    context: typer.Context,  # noqa: ARG001 - every command has it
    in_flight: Annotated[
        int, typer.Option("--turns", min=1, max=2_000, help="Turns at the same time.")
    ] = 200,
    orchestrators: Annotated[
        int, typer.Option(min=1, max=200, help="Over so many orchestrators.")
    ] = 20,
    memories: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Earlier turns in each orchestrator.")
    ] = 1_000,
    rounds: Annotated[
        int, typer.Option(min=1, max=100, help="Turns of each conversation, one after another.")
    ] = 3,
    pause_ms: Annotated[
        int,
        typer.Option(
            "--pause-ms", min=0, max=60_000, help="What each of a turn's two model calls takes."
        ),
    ] = 5_000,
    switch_ms: Annotated[
        float,
        typer.Option(
            "--switch-ms",
            min=0.1,
            max=100.0,
            help="How long Python lets one thread run while others want to.",
        ),
    ] = 5.0,
    seed: Annotated[int, typer.Option(help="Another seed, other texts.")] = 1,
) -> CommandResult:
    """Measure many turns of many orchestrators at once, in one process; and all in one instant."""
    from benchmarks import turns as bench

    load = bench.Load(in_flight, orchestrators, memories, rounds, pause_ms, switch_ms, seed)
    with stages("measuring") as told:
        return _measured(bench.run(load, told))


def contexts(
    context: typer.Context,  # noqa: ARG001 - every command has it
    sizes: Annotated[str, typer.Option(metavar="N,N", help="Numbers of memories.")] = "10000",
    rounds: Annotated[int, typer.Option(min=1, help="Measurements of each kind.")] = 100,
    budget: Annotated[int, typer.Option(min=0, help="Tokens of each context.")] = 2_000,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            file_okay=False,
            help="Keep the filled databases here, and take those that are here already.",
        ),
    ] = None,
) -> CommandResult:
    """Measure how long a context takes, beside recall on the same memories."""
    from benchmarks import contexts as bench

    with stages("measuring") as told:
        found = bench.run(_sizes(sizes), told, rounds=rounds, budget_tokens=budget, keep=keep)
    return _measured(found)


def statements(
    context: typer.Context,
    data: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Labelled statements; repeatable.",
        ),
    ],
) -> CommandResult:
    """Measure how well the configured model tells right statements from wrong ones."""
    from benchmarks import statements as bench

    with invocation(context).service() as service, stages("checking") as told:
        return _measured(bench.run(data, service.settings(), told))


def _sizes(given: str) -> list[int]:
    try:
        return [int(each) for each in given.split(",")]
    except ValueError:
        raise typer.BadParameter("--sizes takes numbers, parted by commas") from None


def _measured(found: dict[str, Any]) -> CommandResult:
    def show(screen: Screen) -> None:
        screen.fields(_flat(found, ""))

    return CommandResult(found, show)


def _flat(found: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in found.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            rows.extend(_flat(value, f"{path}."))
        else:
            rows.append((path, f"{value:.4f}" if isinstance(value, float) else str(value)))
    return rows


BENCH = make_group(
    "bench",
    "Measure quality and speed.",
    {
        "labels": labels,
        "marks": marks,
        "locomo": locomo,
        "retrieval": retrieval,
        "answers": answers,
        "ablation": ablation,
        "staleness": staleness,
        "latency": latency,
        "life": life,
        "context": contexts,
        "statements": statements,
        "turns": turns,
    },
)
