"""Hypotheses as data: arms on problems, what is expected of them, on paper and measured.

`load(name_or_path)`, `names()`; `paper(study, limits)`; `measure(study, stand, ...)`.
"""

from warptile.studies.load import load, names
from warptile.studies.measured import Measured, measure
from warptile.studies.paper import Paper, paper
from warptile.studies.study import Study

__all__ = ["Measured", "Paper", "Study", "load", "measure", "names", "paper"]
