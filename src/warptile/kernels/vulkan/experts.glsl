// Rows of x and y of a workgroup that works for one expert. A slot is one (token, expert taken): token * top_k + j.
// ENTRY: the workgroup's number among tiles of rows. SORTED: rows of a tile are slots of one expert, listed by
// `sort_slots.comp`; otherwise a tile is one slot. A slot whose id names no expert has the expert number P.experts and
// gets zeros, from the dispatch that holds expert 0.

uint expert_at = 0u;       // words before the expert's planes
uint tile_start = 0u;
uint tile_rows = 0u;
bool tile_named = false;

#if SORTED
layout(std430, set = 0, binding = 3) readonly buffer OrderBuffer { uint Order[]; };
layout(std430, set = 0, binding = 4) readonly buffer WorkBuffer { uvec4 Work[]; };
#else
layout(std430, set = 0, binding = 3) readonly buffer IdsBuffer { int Ids[]; };
#endif

// Whether the tile has rows, and its expert lies in this dispatch's buffer.
bool begin_tile(uint entry) {
#if SORTED
    const uvec4 tile = Work[entry];
    tile_start = tile.y;
    tile_rows = tile.z;
    tile_named = tile.x != P.experts;
    const uint expert = tile.x;
#else
    const int id = Ids[entry];
    tile_start = entry;
    tile_rows = 1u;
    tile_named = id >= 0 && uint(id) < P.experts;
    const uint expert = uint(id);
#endif
    if (tile_rows == 0u) return false;
    if (!tile_named) return P.expert0 == 0u;
    if (expert < P.expert0 || expert - P.expert0 >= P.held) return false;
    expert_at = (expert - P.expert0) * P.stride;
    return true;
}

#define BEGIN_TILE if (!begin_tile(ENTRY)) return;
#define FIRST_TOKEN(block) 0u
#define TOKENS tile_rows
#define TILE_CHUNKS (tile_named ? P.k / 32u : 0u)
#if SORTED
#define Y_ROW(token) Order[tile_start + (token)]
#else
#define Y_ROW(token) (tile_start + (token))
#endif
#define X_ROW(token) (Y_ROW(token) / P.x_share)
