"""What won, per exact device: a JSON file a person can read, looked up by matmul, rebuilt from the journal.

`points` holds the data (keys, measured points, rows), `pipelines` a kernel's tiles by size, `table` the file and the
lookup, `rebuild` the replay of a journal, `shipping` the tables that come with the package.
"""

from warptile.tables.pipelines import SIZES, Pipeline, PipelineKey, Pipelines, Thresholds
from warptile.tables.points import Key, Point, Row, Validity
from warptile.tables.rebuild import rebuild_from
from warptile.tables.shipping import renew_shipped, ship, shipped_table
from warptile.tables.table import NEAR, SCHEMA, Served, Table, table_path

__all__ = [
    "NEAR",
    "SCHEMA",
    "SIZES",
    "Key",
    "Pipeline",
    "PipelineKey",
    "Pipelines",
    "Point",
    "Row",
    "Served",
    "Table",
    "Thresholds",
    "Validity",
    "rebuild_from",
    "renew_shipped",
    "ship",
    "shipped_table",
    "table_path",
]
