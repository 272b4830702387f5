"""One document that a stranger can continue from, made of a journal: what was asked, what stands, tried and left.

`rows` turns a device's history into numbered hypotheses with their answers, `parts` into what is served and what was
out, `levers` ranks what was not tried, `commands` repeats a row, `document` writes Markdown.
"""

from warptile.handover.document import handover
from warptile.handover.parts import Part, parts_of

__all__ = ["Part", "handover", "parts_of"]
