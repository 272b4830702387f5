"""What won, per exact device: a JSON file a person can read, looked up by matmul, rebuilt from the journal.

`points` holds the data (keys, measured points, rows), `table` the file and the lookup, `rebuild` the replay of a
journal.
"""

from warptile.tables.points import Key, Point, Row, Validity
from warptile.tables.rebuild import rebuild_from
from warptile.tables.table import NEAR, SCHEMA, Served, Table, table_path

__all__ = ["NEAR", "SCHEMA", "Key", "Point", "Row", "Served", "Table", "Validity", "rebuild_from", "table_path"]
