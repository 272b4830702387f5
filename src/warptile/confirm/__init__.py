"""A tuned model held against the file decoded to float32. Needs the extra `model`."""
