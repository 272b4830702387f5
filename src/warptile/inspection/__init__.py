"""Compiled GPU code read back: any library's kernels, with their registers, spills, shared bytes and code size.

So a peer's library can be read as one's own tiles are. Nothing is run, so nothing here is ever a time.
"""

from warptile.inspection.inspecting import inspect
from warptile.inspection.report import FunctionCode, Inspection

__all__ = ["FunctionCode", "Inspection", "inspect"]
