"""Workloads on Spark: generate and clean datasets, replay them, run the engine over them.

Everything but `generate` and the job works without Spark.

    dataset    `dataset.py` reads one, without Spark; `draft.py` writes one, whole or not at all
    generate   `sensors.py`, `stocks.py`: a row is a function of the seed and its number, in SQL, so nothing is shuffled
    clean      `source_files.py`, `cleaning.py`, `ingest.py`: files of any kind, sorted by time, bad rows put aside
    replay     `merged.py` has all streams in one order, `pace.py` says when rows are due, `targets.py` takes them: an engine or
               a service, which knows how far it is (decision 23)
    Spark      `session.py` starts and ends it; `stream_job.py` is a replay as a Structured Streaming job (decision 22)
"""
