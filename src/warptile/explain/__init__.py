"""Why this tile: the record, the price and the roofline of one matmul on one device, beside each other."""

from warptile.explain.explaining import Explanation, Place, Roof, Side, explain
from warptile.explain.target import Subject, subject

__all__ = ["Explanation", "Place", "Roof", "Side", "Subject", "explain", "subject"]
