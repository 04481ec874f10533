"""The parts of `eddy bench windows`: queries with operators over one stream, the engine, and twins of the queries without it.

workload     the stream, its batches, and the text of each operator's query
driver       the engine, with what its operators held and looked at
twins        the same queries row by row: the papers' pipeline, dicts, and DuckDB recomputing
"""
