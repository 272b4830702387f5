"""The int8 side of `vulkan.mul_mm_coop`: whole-number products, scaled a block at a time."""
