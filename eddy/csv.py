"""CSV for the service and the command line: `lineage/csv_form.py`, `lineage/csv_rows.py` and `lineage/csv_cells.py`."""

from lineage.csv_cells import infer, is_naive, read
from lineage.csv_form import USUAL, CsvError, CsvForm, from_texts, plain_name
from lineage.csv_rows import MARK, CsvRows, CsvTexts, decode, made_column, record_end, split

__all__ = [
    "MARK", "USUAL", "CsvError", "CsvForm", "CsvRows", "CsvTexts", "decode", "from_texts", "infer", "is_naive", "made_column",
    "plain_name", "read", "record_end", "split",
]  # fmt: skip
