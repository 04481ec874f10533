"""Pydantic models of the JSON of control calls. Rows have no model: `api/wire/bodies.py` parses them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from api.base.limits import NAME_CHARACTERS, TAG_CHARACTERS, TAGS

Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS, examples=["readings"])]
#: Milliseconds.
Duration = Annotated[float, Field(ge=0, le=1e15)]


class Strict(BaseModel):
    """Unknown fields are mistakes."""

    model_config = ConfigDict(extra="forbid")


def example(value: dict[str, Any]) -> ConfigDict:
    """Return the settings of a model that has an example in the OpenAPI document."""
    return ConfigDict(json_schema_extra={"examples": [value]})


class StreamDefinition(Strict):
    columns: Annotated[
        dict[str, str], Field(description="name: int, float, string, bool, timestamp, or timestamp[s|ms|us|ns]", min_length=1)
    ]
    time: str | None = Field(None, description="the column with the time of a row; without one rows are timed as they arrive")
    lateness: Duration = Field(0, description="how far behind a row may arrive, milliseconds")
    late: Literal["adjust", "drop"] = "adjust"
    timeline: str = "main"
    keep: Duration | None = Field(None, description="how long rows are kept for later queries, milliseconds")
    key: str | list[str] | None = Field(None, description="columns by which rows replace each other and are retracted")
    end: str | None = Field(None, description="the column with the end of a row's life")

    model_config = example({"columns": {"sensor": "int", "temp": "float", "ts": "timestamp"}, "time": "ts"})


class MergeDefinition(Strict):
    columns: Annotated[dict[str, str], Field(description="as for a stream", min_length=1)]
    time: str = Field(description="the column with the time of a row")
    inputs: list[Name] = Field(["gw1", "gw2"], description="who gives rows; ties go to the first")
    unique: bool | list[str] = Field(
        False,
        description="what makes rows of one time one event: true all columns, or those named; false: equal rows are several",
    )
    missing: Literal["leader", "any"] = Field("leader", description="rows that the deciding input lacks: left out, or kept")
    key: str | list[str] | None = Field(None, description="columns by which rows replace each other")
    end: str | None = Field(None, description="the column with the end of a row's life")
    case: str = Field("auto", description="R0 to R4; auto: by the other options")
    policy: str = Field("stable", description="when a row enters: stable, first, leader, fraction:0.5, ..")
    order: Literal["strict", "ordered", "any"] | None = Field(None, description="the order of each input's times")
    lateness: Duration = Field(0, description="how far behind its newest row an input's rows may be, milliseconds")
    lag: Duration = Field(0, description="how far the merge's point stays behind those of its inputs, milliseconds")
    timeline: str = "main"
    keep: Duration | None = Field(None, description="how long rows are kept for later queries, milliseconds")

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "columns": {"sensor": "int", "temp": "float", "ts": "timestamp"}, "time": "ts", "inputs": ["gw1", "gw2"],
                    "unique": ["sensor"], "missing": "any", "lateness": 2000,
                }
            ]
        },
    )  # fmt: skip


class Attachment(Strict):
    since: int | float | str | None = Field(
        None, description="it has all rows from this time on; none: from the largest time any input gave", examples=[1000]
    )


class StablePoint(Strict):
    time: int | float | str = Field(description="milliseconds since 1970, or ISO 8601", examples=["2026-01-31T12:00:00Z"])


class TableDefinition(Strict):
    columns: Annotated[dict[str, str], Field(min_length=1)]
    key: str | list[str]
    retroactive: bool = False

    model_config = example({"columns": {"sensor": "int", "room": "string"}, "key": "sensor"})


Param = int | float | str | bool | None


class QueryText(Strict):
    sql: str = Field(examples=["SELECT sensor, temp FROM readings [RANGE 5 MINUTES] WHERE temp > 30"])
    params: dict[str, Param] | None = None


class QueryOptions(QueryText):
    tags: list[Annotated[str, Field(max_length=TAG_CHARACTERS)]] = Field(default=[], max_length=TAGS)
    history: Literal["new", "window"] = "new"
    emit: Literal["commit", "event"] = "commit"
    expiry: str | None = None


class QueryDefinition(QueryOptions):
    name: Name | None = None

    model_config = example({"name": "hot", "sql": "SELECT sensor, temp FROM readings [RANGE 5 MINUTES] WHERE temp > 30"})


class QueryBatch(Strict):
    queries: list[QueryDefinition] = Field(
        examples=[[{"sql": f"SELECT temp FROM readings WHERE sensor = {n}", "tags": ["many"]} for n in (1, 2)]]
    )


class StreamFacts(BaseModel):
    name: str
    kind: Literal["stream", "merge"]
    columns: dict[str, str]
    time: str | None
    timeline: str
    lateness: float
    late: str
    keep: float | None
    key: list[str]
    end: str | None


class MergedStreamFacts(StreamFacts):
    inputs: list[str] = Field(description="those it began with")
    unique: bool | list[str]
    missing: str
    case: str
    policy: str
    order: str | None
    lag: float


class MergeFacts(MergedStreamFacts):
    state: dict[str, Any] = Field(description="the point, the leader, and what each input gave")


class TableFacts(BaseModel):
    name: str
    columns: dict[str, str]
    key: list[str]
    retroactive: bool


class QueryFacts(BaseModel):
    id: int
    name: str
    sql: str
    params: dict[str, Any]
    tags: list[str]
    state: Literal["running", "paused", "cancelled"]
    kind: Literal["relation", "stream"]
    columns: dict[str, str]
    streams: list[str]
    update_pattern: str
    history: str
    emit: str
    expiry: str | None
    complete_since: str | None


class Problem(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    kind: str | None = Field(None, description="query, schema, row, not_found, in_use, conflict, gone or limit; none for others")
    hint: str | None = None
    position: dict[str, Any] | None = None
    request_id: str | None = None
    item: int | None = None


class Receipt(BaseModel):
    accepted: int
    late: int = Field(description="older than the newest row the stream had taken")
    expired: int = Field(description="over, when they came, in every window of every query on the stream")
    rejected: int
    first_row: int | None
    last_row: int | None
    errors: list[dict[str, Any]] | None = None
    visible: bool | None = None
    #: of a CSV: cells that are NULL, by column
    nulls: dict[str, int] | None = None


class MergeReceipt(BaseModel):
    accepted: int = Field(description="rows and adjusts that count")
    duplicate: int = Field(description="rows that this input had given before")
    settled: int = Field(description="rows and adjusts that came when their time was settled")
    settled_before: str | None = Field(description="what is older counts no more: its sender may throw it away")
    leader: str | None = Field(description="the input that decides")
    rejected: int = 0
    errors: list[dict[str, Any]] | None = None
    visible: bool | None = None
    nulls: dict[str, int] | None = None


class TableReceipt(BaseModel):
    inserted: int
    updated: int
    deleted: int
    unknown: int
    rejected: int = 0
    errors: list[dict[str, Any]] | None = None
    nulls: dict[str, int] | None = None


class BatchItem(BaseModel):
    """The outcome of one query of a batch: started, or refused and why."""

    status: int
    id: int | None = None
    name: str | None = None
    code: str | None = None
    detail: str | None = None
    hint: str | None = None
    position: dict[str, Any] | None = None


class BatchFacts(BaseModel):
    items: list[BatchItem]


class Answer(BaseModel):
    """The answer of a query at a commit: `rows`, or with ?format=columns `data`."""

    query: str
    time: str | None
    seq: int
    columns: dict[str, str]
    rows: list[dict[str, Any]] | None = None
    data: dict[str, list[Any]] | None = None


class ExperimentFacts(BaseModel):
    name: str
    question: str
    figure: str
    expected: str
    by: str = Field(description="what is compared: counts are the same on every machine")
    parameters: list[dict[str, Any]]
    columns: dict[str, str]
    files: list[str] = Field(description="real data that it reads; such an experiment is run by the command line alone")


class ExperimentItems(BaseModel):
    items: list[ExperimentFacts]


class ExperimentRunFacts(BaseModel):
    id: int
    experiment: str
    quick: bool
    seed: int
    state: Literal["running", "done", "failed", "cancelled"]
    done: int = Field(description="steps that are done")
    steps: int | None = Field(description="of so many; none until the process has said so")
    verdict: dict[str, Any] | None = Field(description="whether the shape holds, the checks and a note")
    error: str | None
    files: list[str] = Field(description="where the results are")


class ExperimentRunItems(BaseModel):
    items: list[ExperimentRunFacts]


class Status(BaseModel):
    status: str
    seq: int | None = None


class Advanced(BaseModel):
    timeline: str
    time: str | None
    seq: int


class Cancelled(BaseModel):
    cancelled: int


class Limited(BaseModel):
    """A page of a listing: some items, and where to go on."""

    items: list[Any]
    next_cursor: str | None


#: Statuses that any call may end in, for the OpenAPI document.
_ANY = {400: "the request cannot be read", 401: "no token, or one that is not known", 403: "the token's role does not allow it",
    408: "the body came too slowly", 413: "the body is too large",
    415: "the media type or content encoding is not read", 421: "the Host or Origin is not this server's",
    422: "understood, and not acceptable", 429: "too many requests, or the input queue is full: see Retry-After",
    503: "the service is recovering, stopping, or has failed"}  # fmt: skip
_MORE = {404: "no such thing", 406: "no such format", 409: "in conflict with what there is",
    410: "the cursor is too old", 431: "the head of the request is too large"}  # fmt: skip


#: Statuses with which even those are turned away who need no token.
_DOOR = (400, 403, 408, 413, 415, 421, 503)


def door_problems() -> dict[int | str, dict[str, Any]]:
    """Return the error answers of a route that needs no token, for the OpenAPI document."""
    return {status: problems()[status] for status in _DOOR}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error answers of a route, for the OpenAPI document."""
    wanted = _ANY | {status: _MORE[status] for status in statuses}
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": text, "content": content} for status, text in sorted(wanted.items())}
