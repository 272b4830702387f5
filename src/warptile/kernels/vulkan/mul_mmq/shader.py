"""The parts of the shader's text that a tile and a layout decide."""

from __future__ import annotations

from warptile.kernels.vulkan import int_dot
from warptile.kernels.vulkan.mul_mmq import trit_loader
from warptile.kernels.vulkan.mul_mmq.staging import staging
from warptile.kernels.vulkan.mul_mmq.tile import MulMmqTile
from warptile.layouts import Layout
from warptile.layouts.trits import TritPlane


def defines(tile: MulMmqTile, layout: Layout) -> str:
    """What precedes the body: how a chunk is staged, its scales, and the dot product."""
    held = staging(tile, layout)
    two = held.groups == 2
    names = ["c.d.x", "c.d.y", "c.m.x", "c.m.y"] if two else ["c.d", "c.m"]
    names = names[: held.groups * (1 + held.minimum)]
    lines = [
        f"#define INT8_STAGED {str(tile.staged == 'int8').lower()}",
        f"#define HAS_MINIMUM {str(held.minimum).lower()}",
        f"#define GROUPS {held.groups}u",
        f"#define SCALE_WORDS {held.scale_words}u",
        f"#define PAIRED_SCALES {held.paired}",
        f"#define GROUPED {'vec2' if two else 'float'}",
        f"#define AT(v, g) {'v[g]' if two else 'v'}",
        f"#define SCALES(c) float[{len(names)}]({', '.join(names)})",
        f"#define PAIR(c) {'c.d' if two else 'vec2(c.d, c.m)'}",
        f"#define UNPAIR(h, d, m) {'d = h' if two else 'd = (h).x; m = (h).y'}",
    ]
    plane = block_plane(tile, layout)
    loader = trit_loader.defines(plane) if plane else ""
    return "\n".join(lines) + "\n" + loader + int_dot.DOT[tile.dot]


def with_loader(body: str, tile: MulMmqTile, layout: Layout) -> str:
    """The body with its block loader in place."""
    assert body.count("STAGE_BLOCK\n") == 1
    plane = block_plane(tile, layout)
    loader = trit_loader.stage_block(plane, tile.loader) if plane else ""
    return body.replace("STAGE_BLOCK\n", loader)


def block_plane(tile: MulMmqTile, layout: Layout) -> TritPlane | None:
    """The base-3 plane that the tile's loader unpacks by blocks; None where it goes by chunks."""
    return layout.codes if tile.loader != "chunk" and isinstance(layout.codes, TritPlane) else None
