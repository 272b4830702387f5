"""A trace of another program, read wrongly, would send its reader after the wrong kernel."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from warptile.contracts import UnusableInput
from warptile.trace.comparing import compare
from warptile.trace.kinds import ATTENTION, DENSE, NORM, POINTWISE, QUANTIZED, ROTARY, kind_of_kernel
from warptile.trace.reading import KernelTime, read_trace

ROCPROF = """\
"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"
"KERNEL_DISPATCH",1,1,12,"void mul_mat_q<(ggml_type)12, 64, false>(char const*, int)",1,1000,6000
"KERNEL_DISPATCH",1,1,12,"void mul_mat_q<(ggml_type)12, 64, false>(char const*, int)",2,7000,12000
"KERNEL_DISPATCH",1,1,13,"rms_norm_f32<256>",3,13000,13500
"""
NSYS_TRACE = """\
Processing [report.sqlite] with [cuda_gpu_trace.py]...

Start (ns),Duration (ns),CorrId,GrdX,Strm,Name
100,5000,1,8,7,"mul_mat_q<12, 64>"
6000,5000,2,8,7,"mul_mat_q<12, 64>"
12000,500,3,8,7,rms_norm_f32
"""
NSYS_SUM = """\
Time (%),Total Time (us),Instances,Avg (us),Name
95.2,10.0,2,5.0,"mul_mat_q<12, 64>"
4.8,0.5,1,0.5,rms_norm_f32
"""
NCU = """\
==PROF== Disconnected from process 7
"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","7","mul_mat_q<12, 64>","x","gpu__time_duration.sum","nsecond","5,000"
"0","7","mul_mat_q<12, 64>","x","dram__bytes.sum","byte","9"
"1","7","mul_mat_q<12, 64>","x","gpu__time_duration.sum","usecond","5"
"2","7","rms_norm_f32","x","gpu__time_duration.sum","nsecond","500"
"""
NCU_RAW = """\
"ID","Kernel Name","gpu__time_duration.sum"
"","","usecond"
"0","mul_mat_q<12, 64>","10"
"1","rms_norm_f32","0.5"
"""
CHROME = json.dumps(
    {
        "traceEvents": [
            {"ph": "M", "name": "process_name"},
            {"ph": "X", "cat": "kernel", "name": "mul_mat_q<12, 64>", "ts": 1, "dur": 10},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 99},
            {"ph": "X", "cat": "kernel", "name": "rms_norm_f32", "ts": 12, "dur": 0.5},
        ]
    }
)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (ROCPROF, "rocprofv3"),
        (NSYS_TRACE, "nsys"),
        (NSYS_SUM, "nsys"),
        (NCU, "ncu"),
        (NCU_RAW, "ncu"),
        (CHROME, "a Chrome trace"),
    ],
)
def test_every_form_gives_the_same_kernels(tmp_path: Path, text: str, source: str) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    found, kernels = read_trace(path)
    assert found == source
    assert ["mul_mat_q" in kernels[0].kernel, "rms_norm" in kernels[1].kernel] == [True, True]
    assert math.isclose(kernels[0].seconds, 10e-6)
    assert math.isclose(kernels[1].seconds, 0.5e-6)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no table",
        '{"a": 1}',
        '{"traceEvents": []}',
        "Name,Size\nx,1\n",
        ROCPROF.replace("6000", "nan"),
        "[1]",
        "[" * 200_000,
    ],
)
def test_what_is_no_trace_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.csv"
    path.write_text(text)
    with pytest.raises(UnusableInput, match=r"other\.csv"):
        read_trace(path)


def test_the_gap_is_said_by_kind() -> None:
    ours = [
        KernelTime("triton.gemm:tile_n=64", 2, 9e-3, True),
        KernelTime("flash_fwd_kernel", 1, 1e-3),
        KernelTime("aten::rsqrt", 1, 1e-3),
    ]
    theirs = [
        KernelTime("void mul_mat_q<(ggml_type)12, 64, false>", 2, 5e-3),
        KernelTime("quantize_mmq_q8_1", 2, 1e-3),
        KernelTime("flash_attn_ext_f16", 1, 2e-3),
    ]
    found = compare(ours, "nsys", theirs)
    assert {pair.kind: round(pair.gap * 1e3) for pair in found.pairs} == {QUANTIZED: 3, NORM: 1, ATTENTION: -1}
    assert found.where() == "11.000 ms here, 8.000 ms there: 75% of what is lost is quantized matmul"


def test_kinds_of_well_known_names() -> None:
    assert kind_of_kernel("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT") == DENSE
    assert kind_of_kernel("gemm_kernel") == QUANTIZED
    own = {"attend_one": ATTENTION, "attend_many": ATTENTION, "add_norm": NORM, "rotate": ROTARY, "gated": POINTWISE}
    assert {name: kind_of_kernel(name) for name in own} == own
    assert kind_of_kernel("nvjet_hsh", quantized=True) == QUANTIZED
