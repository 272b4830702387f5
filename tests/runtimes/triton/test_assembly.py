"""Whether a spill is inside the K loop is read off machine code; a wrong answer would pass a tile that spills every
step, or refuse one that spills once."""

from __future__ import annotations

from warptile.runtimes.triton.assembly import amd_instructions, count_nvidia, k_loops, read_amd, sass_instructions

AMD = """\
gemm:
\t.loc 1 2 3
\ts_load_b64 s[2:3], s[0:1], 0x0
\tscratch_store_b32 off, v1, off offset:4 ; 4-byte Folded Spill
.LBB0_1:                                ; a loop without a matrix instruction
\tv_add_nc_u32_e32 v1, 1, v1
\tscratch_load_b32 v1, off, off offset:4
\ts_cbranch_scc1 .LBB0_1
\ts_cbranch_execz .LBB0_3
.LBB0_2:
\tv_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[12:15], v[0:7]
{inside}\ts_cbranch_vccnz .LBB0_2
.LBB0_3:
\tbuffer_store_b32 v0, v1, s[0:3], 0 offen
\tscratch_load_b32 v1, off, off offset:4 ; 4-byte Folded Reload
\ts_endpgm
; Occupancy: 5
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 8
    .sgpr_count:     40
    .sgpr_spill_count: 0
    .vgpr_count:     256
    .vgpr_spill_count: 1
"""

SASS = """\
        /*0000*/                   LDC R1, c[0x0][0x28] ;      /* 0x00000a00ff017b82 */
                                                               /* 0x000ff00000000800 */
        /*0010*/                   STL [R1+0x4], R2 ;          /* 0x00009000ff027b82 */
        /*0020*/               @P0 BRA 0x60 ;                  /* 0x00009000ff027b82 */
        /*0030*/                   HGMMA.64x64x16.F32 R24, R56, gdesc[UR8], R24, gsb0 ;
        /*0040*/                   {middle} ;
        /*0050*/              @!P4 BRA P1, 0x30 ;
        /*0060*/                   LDL R2, [R1+0x4] ;
        /*0070*/                   BRA 0x70;
"""


def test_amd_scratch_outside_the_k_loop_is_no_spill_inside_it() -> None:
    code = read_amd(AMD.format(inside=""))
    assert (code.registers, code.spilled_registers, code.spill_bytes) == (256, 1, 8)
    assert (code.local_accesses, code.loop_accesses, code.matrix, code.loops) == (3, 0, 1, 1)
    assert ("waves a SIMD", 5.0) in code.raw


def test_amd_scratch_inside_the_k_loop_is_found() -> None:
    for line in (
        "scratch_load_b64 v[2:3], off, off",
        "buffer_load_dword v1, off, s[0:3], 0 offset:4 ; 4-byte Folded Reload",
    ):
        assert read_amd(AMD.format(inside=f"\t{line}\n")).loop_accesses == 1
    assert read_amd(AMD.format(inside="\tbuffer_load_b32 v1, v2, s[0:3], 0 offen\n")).loop_accesses == 0


def test_where_no_loop_has_a_matrix_instruction_all_loops_count() -> None:
    text = AMD.format(inside="").replace("v_wmma_f32_16x16x16_f16", "v_dot2_f32_f16")
    assert len(k_loops(amd_instructions(text))) == 2
    assert read_amd(text).loop_accesses == 1


def test_sass_branches_and_local_memory() -> None:
    code = sass_instructions(SASS.format(middle="LDL.64 R4, [R1]"))
    assert [i.target for i in code if i.target is not None] == [0x60, 0x30, 0x70]
    assert k_loops(code) == [(0x30, 0x50)]


# A wait (0x40, tried once in the loop and then behind the code, at 0xa0) between two parts of a K loop, inside a loop
# over tiles; the second group of warps (0xc0) is entered by a table.
OUT_OF_LINE = """\
        /*0000*/                   BRX R4 -0x10 ;
        /*0010*/                   NOP ;
        /*0020*/                   {outer} ;
        /*0030*/                   HGMMA.64x64x16.F32 R24, R56, gdesc[UR8], R24, gsb0 ;
        /*0040*/              @!P0 BRA 0xa0 ;
        /*0050*/                   HGMMA.64x64x16.F32 R24, R56, gdesc[UR8], R24, gsb0 ;
        /*0060*/               @P1 BRA 0x30 ;
        /*0070*/                   {after} ;
        /*0080*/               @P2 BRA 0x20 ;
        /*0090*/                   EXIT ;
        /*00a0*/              @!P0 BRA 0xa0 ;
        /*00b0*/                   BRA {back} ;
        /*00c0*/              @!P3 BRA 0xc0 ;
        /*00d0*/                   HGMMA.64x64x16.F32 R24, R56, gdesc[UR8], R24, gsb0 ;
        /*00e0*/              @!P0 BRA 0x110 ;
        /*00f0*/               @P1 BRA 0xd0 ;
        /*0100*/                   EXIT ;
        /*0110*/              @!P0 BRA 0x110 ;
        /*0120*/                   BRA 0xf0 ;
        /*0130*/                   BRA 0x130;
"""


def test_a_wait_moved_behind_the_code_is_no_loop_around_what_lies_between() -> None:
    """Else what a loop over tiles reads once a tile would be told as read every step, and good tiles refused."""
    code = sass_instructions(OUT_OF_LINE.format(outer="LDL R2, [R1]", after="LDL R3, [R1]", back="0x50"))
    assert k_loops(code) == [(0x30, 0x60), (0xD0, 0xF0)]
    assert count_nvidia(code).loop_accesses == 0


def test_a_loop_whose_only_branch_back_lies_behind_the_code_is_one() -> None:
    """What its spills cost must not be missed; all that lies between counts then, rather too much than too little."""
    text = OUT_OF_LINE.format(outer="NOP", after="LDL R3, [R1]", back="0x30")
    code = sass_instructions(text.replace("@P1 BRA 0x30", "NOP").replace("@P2 BRA 0x20", "NOP"))
    assert k_loops(code) == [(0x30, 0xB0), (0xD0, 0xF0)]
    assert count_nvidia(code).loop_accesses == 1


TABLE_WITHIN = """\
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/               @P0 BRA 0x50 ;
        /*0020*/                   BRX R4 -0x30 ;
        /*0030*/                   BRA 0x50 ;
        /*0040*/                   NOP ;
        /*0050*/                   HMMA.16816.F32 R24, R56, R8, R24 ;
        /*0060*/              @!P1 BRA 0x10 ;
        /*0070*/                   EXIT ;
        /*0080*/                   BRA 0x80;
"""


def test_what_a_table_within_a_loop_leads_to_is_of_the_loop() -> None:
    """Else a kernel whose loop picks words by a table would have no loop, and no spill in it would be seen."""
    assert k_loops(sass_instructions(TABLE_WITHIN)) == [(0x10, 0x60)]
