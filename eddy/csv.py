"""CSV for the service and the command line: `lineage/csv_form.py`, `lineage/csv_rows.py` and `lineage/csv_cells.py`."""

from lineage.csv_cells import infer, is_naive, read, unit_of
from lineage.csv_form import USUAL, CsvError, CsvForm, from_texts, plain_name, types_of
from lineage.csv_rows import MARK, SNIFFED_LINES, CsvRows, CsvTexts, decode, made_column, record_end, sniff, split

__all__ = [
    "MARK",
    "SNIFFED_LINES",
    "USUAL",
    "CsvError",
    "CsvForm",
    "CsvRows",
    "CsvTexts",
    "decode",
    "from_texts",
    "infer",
    "is_naive",
    "made_column",
    "plain_name",
    "read",
    "record_end",
    "sniff",
    "split",
    "types_of",
    "unit_of",
]
