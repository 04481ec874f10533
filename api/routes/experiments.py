"""Routes of experiments: list, start, follow, cancel, results and pictures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import Field

from api.base.jsons import json_response
from api.experiment_runs import FILES, ExperimentRuns
from api.wire.models import ExperimentItems, ExperimentRunFacts, ExperimentRunItems, Name, Strict, example, problems

router = APIRouter(tags=["experiments"])


class ExperimentStart(Strict):
    name: Name
    quick: bool = Field(True, description="fewer rows and queries: less than a minute")
    seed: int = Field(1, ge=0, le=2**31)

    model_config = example({"name": "tickets", "quick": True, "seed": 1})


def runs_of(request: Request) -> ExperimentRuns:
    """Return the experiment runs of the service."""
    found: ExperimentRuns = request.app.state.experiments
    return found


Runs = Annotated[ExperimentRuns, Depends(runs_of)]
RunNumber = Annotated[int, Path(ge=1, le=2**53)]

_FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "the file",
        "content": {media: {"schema": {"type": "string"}} for media in FILES.values() if media != "application/json"}
        | {"application/json": {"schema": {"type": "object"}}},
    }
}


@router.get("/v1/experiments", response_model=ExperimentItems, responses=problems())
async def list_experiments(runs: Runs) -> Any:
    """The experiments there are: what each asks, where the paper does, its parameters and the columns of its rows."""
    return json_response({"items": await runs.listed()})


@router.post(
    "/v1/experiments/runs", status_code=202, response_model=ExperimentRunFacts, responses=problems(404, 409),
)  # fmt: skip
async def start_experiment(runs: Runs, body: ExperimentStart) -> Any:
    """Start an experiment in a process of its own; 409 while another one runs. `Location` says where to follow it."""
    run = await runs.start(body.name, body.quick, body.seed)
    return json_response(run.facts(), 202, headers={"Location": f"/v1/experiments/runs/{run.id}"})


@router.get("/v1/experiments/runs", response_model=ExperimentRunItems, responses=problems())
async def list_runs(runs: Runs) -> Any:
    """The runs since the service started, the newest first."""
    return json_response({"items": [run.facts() for run in runs.all()]})


@router.get("/v1/experiments/runs/{run}", response_model=ExperimentRunFacts, responses=problems(404))
async def get_run(runs: Runs, run: RunNumber) -> Any:
    """How far a run is, and its verdict when it is done."""
    return json_response(runs.get(run).facts())


@router.delete("/v1/experiments/runs/{run}", status_code=204, responses=problems(404))
async def cancel_run(runs: Runs, run: RunNumber) -> Response:
    """End a run if it is under way, and forget it and its results."""
    await runs.cancel(run)
    return Response(status_code=204)


@router.get(
    "/v1/experiments/runs/{run}/{file}", response_class=Response, responses={**_FILES, **problems(404, 409)},
)  # fmt: skip
async def get_file(
    runs: Runs, run: RunNumber, file: Literal["rows.csv", "plot.png", "plot.svg", "run.json"]
) -> Response:  # fmt: skip
    """The rows that were measured, the picture, or the whole verdict, of a run that is done."""
    return Response(runs.file(run, file), media_type=FILES[file])
