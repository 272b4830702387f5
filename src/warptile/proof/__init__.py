"""Is it right: the proof of one candidate on a device, and what it is held against."""

from warptile.proof.checks import CHECKS
from warptile.proof.proving import prove
from warptile.proof.references import ReferenceCache
from warptile.proof.version import PROOF_VERSION

__all__ = ["CHECKS", "PROOF_VERSION", "ReferenceCache", "prove"]
