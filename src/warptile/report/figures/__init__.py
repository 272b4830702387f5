"""One figure a file, each from a device's record to a `Picture`."""
