"""The record read back: for each matmul of a device, what was tried, what it measured and what stands."""

from warptile.record.matmuls import DeviceRecord, MatmulRecord, Tried, records_of
from warptile.record.scale import joined

__all__ = ["DeviceRecord", "MatmulRecord", "Tried", "joined", "records_of"]
