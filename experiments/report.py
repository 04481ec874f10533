"""One HTML page of all results in a folder, with nothing beside it: styles, pictures and tables are inside.

The page begins with the verdicts, so that who has a minute sees what holds and what does not; then a section for each
experiment: what is asked, what is expected, the picture, the checks, and how to run it again.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from pathlib import Path

from experiments.experiment import Experiment, shown
from experiments.runs import PNG, ROWS, RUN, FinishedRun, read_run
from lineage.errors import NotFoundError

REPORT = "report.html"

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #777; --good: #0a7d4f; --bad: #c0392b; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin: 3rem 0 .3rem; border-top: 1px solid var(--line); padding-top: 1.5rem; }
img { width: 100%; background: white; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; margin: .8rem 0; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; } th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; } .dim { color: var(--dim); }
code { font-size: .9em; } summary { cursor: pointer; color: var(--dim); } figcaption { color: var(--dim); font-size: .92rem; }
figure { margin: 1rem 0; } a { color: inherit; }
"""


def write_report(out: Path, experiments: Mapping[str, Experiment]) -> Path:
    """Write the page of the runs in a folder; returns where it is."""
    found = [(experiment, out / name) for name, experiment in experiments.items() if (out / name / RUN).is_file()]
    if not found:
        raise NotFoundError(f"{out} holds no results", code="no_results", hint="eddy experiment run --all --quick")
    path = out / REPORT
    path.write_text(page([(experiment, read_run(folder), folder) for experiment, folder in found]))
    return path


def page(runs: list[tuple[Experiment, FinishedRun, Path]]) -> str:
    """The page."""
    n_held = sum(run.verdict.holds for _, run, _ in runs)
    lines = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Eddy: the experiments of CACQ</title><style>{_STYLE}</style>",
        "<h1>The experiments of CACQ, run again</h1>",
        "<p>Continuously adaptive continuous queries (Madden, Shah, Hellerstein, Raman, SIGMOD 2002) asked what sharing and "
        "adaptive routing gain. Each section puts one of its questions to this engine. A verdict is about the <em>shape</em> of "
        "the result: ratios, slopes and counts, never seconds, so it should be the same on any machine.</p>",
        f"<p><b>{n_held} of {len(runs)}</b> shapes are found here.</p>",
        "<table><tr><th>experiment<th>question<th>verdict<th>by",
    ]
    for experiment, run, _ in runs:
        lines.append(
            f"<tr><td><a href='#{experiment.name}'>{experiment.name}</a><td>{escape(experiment.question)}"
            f"<td>{_word(run.verdict.holds)}<td class=dim>{escape(experiment.by)}"
        )
    lines.append("</table>")
    for experiment, run, folder in runs:
        lines += section(experiment, run, folder)
    return "\n".join(lines) + "\n</html>\n"


def section(experiment: Experiment, run: FinishedRun, folder: Path) -> list[str]:
    """Return the section of the page about one experiment."""
    verdict = run.verdict
    picture = base64.b64encode((folder / PNG).read_bytes()).decode()
    flags = " --quick" * run.quick + f" --seed {run.seed}" * (run.seed != 1) + " --data DIR" * bool(experiment.files)
    lines = [
        f"<h2 id='{experiment.name}'>{escape(experiment.question)}</h2>",
        f"<p class=dim>{escape(experiment.figure)}</p>",
        f"<p><b>Expected:</b> {escape(experiment.expected)}.</p>",
        f"<figure><img alt='{escape(experiment.question)}' src='data:image/png;base64,{picture}'>",
        f"<figcaption>{escape(experiment.caption)}</figcaption></figure>",
        f"<p><b>Verdict:</b> {_word(verdict.holds)}.</p>",
        "<table><tr><th>claim<th class=number>found<th class=number>bar<th>",
    ]
    for check in verdict.checks:
        lines.append(
            f"<tr><td>{escape(check.claim)}<td class=number>{shown(check.value)}<td class=number>{escape(check.bar)}"
            f"<td>{'<span class=good>ok</span>' if check.holds else '<span class=bad>missed</span>'}"
        )
    lines.append("</table>")
    if verdict.note:
        lines.append(f"<p>{escape(verdict.note)}</p>")
    lines.append("<details><summary>Parameters and data</summary><table><tr><th>parameter<th>value<th>")
    for parameter in experiment.parameters:
        whose = "ours" if parameter.ours else "the paper's"
        lines.append(f"<tr><td>{escape(parameter.name)}<td>{escape(parameter.value)}<td class=dim>{whose}")
    lines.append("</table><table><tr><th>column of the CSV<th>meaning")
    lines += [f"<tr><td><code>{escape(name)}</code><td>{escape(text)}" for name, text in experiment.columns.items()]
    rows = base64.b64encode((folder / ROWS).read_bytes()).decode()
    lines.append(
        f"</table><p><a download='{experiment.name}.csv' href='data:text/csv;base64,{rows}'>{experiment.name}.csv</a> · "
        f"run again: <code>eddy experiment run {experiment.name}{flags}</code> · took {run.seconds:.0f} s</p></details>"
    )
    return lines


def _word(holds: bool) -> str:
    return "<span class=good>holds</span>" if holds else "<span class=bad>does not hold</span>"
