"""The reader of C++: what it understands it runs, what it does not it names and never guesses."""

from __future__ import annotations

from warptile.llama_cpp.cpp import Evaluator, Preprocessor, Unknown, parse_body
from warptile.llama_cpp.cpp.scopes import Scope
from warptile.llama_cpp.cpp.values import Record, Sequence


def run(text: str, **natives):
    evaluator, scope = Evaluator(natives), Scope(None, {"device": Record({"subgroup_size": 16, "mul_mat_l": True})})
    for statement in parse_body(Preprocessor(assumed=lambda name: name.startswith("VK_")).run(text)).statements:
        evaluator.run(statement, scope)
    return scope.names, evaluator.notes


def test_tuples_with_expressions_lambdas_macros_and_captures():
    made = []
    names, notes = run(
        """
        const uint32_t warp = std::max(device->subgroup_size, 32u);
        std::vector<uint32_t> l_warptile, m_warptile;
        l_warptile = m_warptile = { 128, 4 * 32,
            device->subgroup_size > 8 ? warp / 2 : (uint32_t)sizeof(float), ~3u & 0xff };
        struct config { std::vector<uint32_t> warptile; uint32_t align; };
        std::vector<config> all = {{l_warptile, 64}, {m_warptile, 32}};
        auto const &spec = [&](std::vector<uint32_t> t, bool aligned) { t.push_back(aligned ? 1u : 0u); return t; };
        #define CREATE(NAME, TYPE) create(#NAME "_x", NAME ## _data, spec(l_warptile, TYPE));
        #if defined(VK_KHR_cooperative_matrix) && !defined(OTHER)
        CREATE(matmul, true)
        #else
        CREATE(never, false)
        #endif
        auto later = [&, warp=warp + 1](uint32_t more) { return warp + more; };
        uint32_t sum = later(2), total = 0;
        for (uint32_t i = 0; i < 4; ++i) { switch (i) { case 1: case 2: total += 10; break; default: total += 1; } }
        for (const auto & c : all) { total += c.align; }
        """,
        create=lambda arguments, line: made.append(arguments) or 0,
    )
    assert not notes
    assert names["l_warptile"].items == [128, 128, 16, 252]
    assert names["l_warptile"].line == names["m_warptile"].line == 4
    assert [made[0][0], made[0][1].name, made[0][2].items] == ["matmul_x", "matmul_data", [128, 128, 16, 252, 1]]
    assert len(made) == 1
    assert (names["sum"], names["total"]) == (35, 1 + 10 + 10 + 1 + 64 + 32)


def test_what_depends_on_something_unknown_is_named_and_forgotten():
    names, notes = run(
        """
        uint32_t a = 1, b = 2;
        if (ask_driver(device)) { a = 5; device->mul_mat_l = false; } else { b = 7; }
        uint32_t c = a + 1, d = 3;
        a = 4;
        """
    )
    assert [(note.line, note.what) for note in notes] == [(3, "a condition with a call of ask_driver")]
    assert isinstance(names["b"], Unknown)
    assert isinstance(names["c"], Unknown)
    assert isinstance(names["device"].members["mul_mat_l"], Unknown)
    assert (names["a"], names["d"]) == (4, 3)


def test_a_statement_it_cannot_parse_costs_that_statement_alone():
    names, notes = run("uint32_t a = 1;\nauto [x, a] = pair<=>other;\nstd::vector<int> v = {2, 3};")
    assert [note.line for note in notes] == [2]
    assert isinstance(names["v"], Sequence)
    assert names["v"].items == [2, 3]
