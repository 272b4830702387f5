"""Asking a physical device for extension structures."""

from __future__ import annotations

from typing import Any

from warptile.runtimes.vulkan.binding import ffi, lib, vk


def properties2(handle: Any, structure: Any) -> Any:
    """`structure` filled by vkGetPhysicalDeviceProperties2."""
    top = vk.VkPhysicalDeviceProperties2(pNext=ffi.addressof(structure))
    lib.vkGetPhysicalDeviceProperties2(handle, ffi.addressof(top))
    return structure


def features2(handle: Any, structure: Any) -> Any:
    """`structure` filled by vkGetPhysicalDeviceFeatures2."""
    top = vk.VkPhysicalDeviceFeatures2(pNext=ffi.addressof(structure))
    lib.vkGetPhysicalDeviceFeatures2(handle, ffi.addressof(top))
    return structure
