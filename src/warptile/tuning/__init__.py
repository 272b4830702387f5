"""Helpers of the loop in `warptile.tune`: time accounting, the order of candidates, what the journal already knows."""
