"""Bad input to both commands: every line of it, the exit code, no traceback, nothing written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import REPOSITORY
from tests.small_specs import MODEL, SPEC, edited, run, spec_folder

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "cli_errors.yaml").read_text("utf-8")
)
COMMANDS = [["generate", "spec.yaml", "--out", "out"], ["capacity", "spec.yaml"]]
FILE_HINT = "letters, digits, '.', '_', '+' and '-' only; it becomes a file name"
LAYOUT_HINT = "write it like TEP8, DEP16, TP2DP4+EP, TP1PP6+EP or 2xTP2DP4+EP"
FORMULA_HINT = "a formula uses whole numbers, names, + - *, ceil(a / b), floor(a / b), min(), max()"


@pytest.fixture
def folder(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with ``spec.yaml`` and ``model``."""
    monkeypatch.chdir(tmp_path)
    return spec_folder(tmp_path, repository)


def assert_refused(arguments: list[str], exit_code: int, problems: list[str]) -> None:
    """The command says exactly this on stderr, nothing on stdout, and leaves no file behind."""
    before = files_and_folders()
    result = run(*arguments)
    assert result.stderr.splitlines() == [f"error: {problem}" for problem in problems]
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert files_and_folders() == before


def files_and_folders() -> set[Path]:
    return set(Path().rglob("*"))


# --- the contents of a spec -------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_edit_of_a_spec(case: dict[str, Any], command: list[str], folder: Path) -> None:
    text = edited(*((old, new) for old, new in case["edits"]))
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    assert_refused(command, case["exit"], case["errors"])


def test_cases_have_names_of_their_own() -> None:
    names = [case["case"] for case in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        pytest.param(
            ("prefill: 1xTEP8", "prefill: TP" + "9" * 5000),
            f"prefill: layout 'TP{'9' * 53}...': cannot read 'TP{'9' * 53}...' ({LAYOUT_HINT})",
            id="layout",
        ),
        pytest.param(
            ("concurrencies: [4]", f'concurrencies: "{"9" * 5000}"'),
            f"concurrencies: '{'9' * 55}...' is not valid here"
            " (whole numbers up to 999999 joined by 'x', such as 64x128x256)",
            id="loads",
        ),
        pytest.param(
            ("concurrencies: [4]", f"concurrencies: [{'9' * 99}]"),
            f"concurrencies[0]: must be at most 999999, got {'9' * 56}...9",
            id="one load",
        ),
        pytest.param(
            ("file: a", f"file: {'a' * 201}"),
            f"file: must have at most 200 characters, has 201 ({FILE_HINT})",
            id="file",
        ),
    ],
)
def test_very_long_text(edit: tuple[str, str], problem: str, folder: Path) -> None:
    (folder / "spec.yaml").write_text(edited(edit), encoding="utf-8")
    assert_refused(COMMANDS[0], 3, [f"spec.yaml:21: groups[0].deployments[0].{problem}"])


def test_very_long_formula(folder: Path) -> None:
    formula = "isl" + " + isl" * 40
    edit = ("ceil(concurrency / ranks) + headroom_sequences", formula)
    (folder / "spec.yaml").write_text(edited(edit), encoding="utf-8")
    problem = f"formula '{formula[:40]}...': longer than 200 characters ({FORMULA_HINT})"
    assert_refused(COMMANDS[0], 3, [f"spec.yaml:16: sizing.decode.max-num-seqs: {problem}"])


# --- the file itself --------------------------------------------------------------------------


def explosion() -> str:
    """Nine aliases of nine aliases, eight deep: 43 million values."""
    rows = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for name, before in zip("bcdefgh", "abcdefg", strict=True):
        rows.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    return "\n".join(rows)


FILES = [
    pytest.param("", "spec.yaml: is empty", id="empty"),
    pytest.param("# nothing\n", "spec.yaml: is empty", id="only a comment"),
    pytest.param("- a\n", "spec.yaml:1: expected a mapping, got a list", id="list"),
    pytest.param("text\n", "spec.yaml:1: expected a mapping, got 'text' (a string)", id="text"),
    pytest.param(
        b"name: \xe9t\xe9\n",
        "spec.yaml:1: not UTF-8 text: byte 0xe9 at offset 6 (save it as UTF-8)",
        id="Latin-1",
    ),
    pytest.param(
        SPEC.encode("utf-16"),
        "spec.yaml:1: not UTF-8 text: byte 0xff at offset 0"
        " (it looks like UTF-16: save it as UTF-8)",
        id="UTF-16",
    ),
    pytest.param(
        SPEC + "\0",
        "spec.yaml:22: control character U+0000: not a text file (remove it)",
        id="NUL",
    ),
    pytest.param(
        explosion(),
        "spec.yaml:1: more than 100,000 values once aliases are written out (use fewer aliases)",
        id="aliases that explode",
    ),
    pytest.param(
        "a: &a [*a]\n",
        "spec.yaml:1: a[0]: alias *a stands inside what it names (write the value out)",
        id="alias of itself",
    ),
    pytest.param(
        "[" * 100_000,
        "spec.yaml:1: nested more than 64 levels deep (is a bracket not closed?)",
        id="brackets without end",
    ),
    pytest.param(
        SPEC + "---\n" + SPEC,
        "spec.yaml:22: a second document starts here (one document per file: remove '---')",
        id="two documents",
    ),
    pytest.param(
        SPEC.replace("  type: vllm", "\ttype: vllm"),
        "spec.yaml:7: a tab in the indentation (indent with spaces)",
        id="tab",
    ),
    pytest.param(
        SPEC + "workload: {isl: 1, osl: 1}\n",
        "spec.yaml:22: workload: duplicate key 'workload', first on line 10 (keep one of them)",
        id="key twice",
    ),
    pytest.param(
        SPEC.replace("pdrecipe: 1", "pdrecipe: !!python/name:os.system 1"),
        "spec.yaml:1: pdrecipe: tag !!python/name:os.system cannot be used here (remove the tag)",
        id="tag",
    ),
    pytest.param(
        "x" * (8 * 2**20 + 1), "spec.yaml: is over 8 MiB (is this the right file?)", id="huge"
    ),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(("content", "problem"), FILES)
def test_file(content: str | bytes, problem: str, command: list[str], folder: Path) -> None:
    raw = content.encode() if isinstance(content, str) else content
    (folder / "spec.yaml").write_bytes(raw)
    assert_refused(command, 3, [problem])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["generate", "capacity"])
@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("nowhere.yaml", "nowhere.yaml: no such file (check the path)"),
        (".", ".: is a folder, not a file (name a file)"),
        (
            "spec.yaml/more",
            "spec.yaml/more: a part of the path is a file, not a folder (check the path)",
        ),
        ("a\nb.yaml", "a\\nb.yaml: no such file (check the path)"),
        ("\udcff.yaml", "\\udcff.yaml: no such file (check the path)"),
        ("x" * 300, "x" * 300 + ": the name is too long (choose a shorter one)"),
    ],
    ids=["missing", "folder", "below a file", "line end", "no UTF-8 name", "long"],
)
def test_path(spec: str, problem: str, command: str) -> None:
    assert_refused([command, spec], 3, [problem])


# --- the model beside it ----------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_truncated_config(command: list[str], folder: Path) -> None:
    config = folder / "model" / "config.json"
    before, _, _ = config.read_text("utf-8").partition('"text_config":')
    config.write_text(before + '"text_config":', encoding="utf-8")
    line = before.count("\n") + 1
    problem = (
        f"model/config.json:{line}: is not valid JSON: expecting value"
        " (a download that was cut short? fetch the file again)"
    )
    assert_refused(command, 3, [problem])


def test_both_files_of_a_model_that_are_broken(folder: Path) -> None:
    (folder / "model" / "config.json").write_text("[]", encoding="utf-8")
    (folder / "model" / "hf_quant_config.json").write_bytes(b"{}\xff")
    assert_refused(
        COMMANDS[0],
        3,
        [
            "model/config.json:1: must hold a JSON object at its top",
            "model/hf_quant_config.json:1: is not UTF-8 text",
        ],
    )


# --- where the recipes go ---------------------------------------------------------------------


def test_out_is_a_file(folder: Path) -> None:
    (folder / "out").write_text("", encoding="utf-8")
    reason = "a part of the path is a file, not a folder"
    hint = "move it away or choose another folder with --out"
    assert_refused(COMMANDS[0], 3, [f"out/a.yaml: {reason} ({hint})"])
    arguments = ["generate", "spec.yaml", "--out", "out/below"]
    assert_refused(arguments, 3, [f"out/below/a.yaml: {reason} ({hint})"])


@pytest.mark.parametrize("option", [[], ["--check"]], ids=["write", "check"])
def test_folder_in_the_way_of_the_second_recipe(option: list[str], folder: Path) -> None:
    """The first recipe is not written either."""
    second = "      - {file: b, prefill: 1xTEP8, concurrencies: [4]}\n"
    (folder / "spec.yaml").write_text(SPEC + second, encoding="utf-8")
    (folder / "out" / "b.yaml").mkdir(parents=True)
    problem = (
        "out/b.yaml: is a folder, not a file (move it away or choose another folder with --out)"
    )
    assert_refused([*COMMANDS[0], *option], 3, [problem])


def test_recipe_on_disk_that_is_no_text(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "a.yaml").write_bytes(b"# \xff")
    problem = (
        "out/a.yaml:1: not UTF-8 text: byte 0xff at offset 2"
        " (move it away or choose another folder with --out)"
    )
    assert_refused(COMMANDS[0], 3, [problem])


def test_no_output_folder(folder: Path) -> None:
    (folder / "spec.yaml").write_text(edited(("output: recipes\n", "")), encoding="utf-8")
    problem = (
        "spec.yaml: the spec names no output folder"
        " (add 'output: <folder>' to the spec, or give --out)"
    )
    assert_refused(["generate", "spec.yaml"], 3, [problem])


# --- recipes that srt-slurm would not take ----------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "edit", "problem"),
    [
        pytest.param(
            "v2",
            ("benchmark:", "sections: {infra: {nats_max_payload_mb: 64}}\nbenchmark:"),
            "spec.yaml:11: sections.infra: unknown key 'infra' in layout v2",
            id="section of v1 alone",
        ),
        pytest.param(
            "v1",
            ("benchmark:", "sections: {services: []}\nbenchmark:"),
            "spec.yaml:11: sections.services: unknown key 'services' in layout v1",
            id="section of v2 alone",
        ),
        pytest.param(
            "v2",
            ("benchmark:", "dynamo: {verison: 1.2.0}\nbenchmark:"),
            "spec.yaml:11: dynamo.verison: unknown key 'verison' in layout v2",
            id="misspelt key of a section",
        ),
        pytest.param(
            "v1",
            ("benchmark:", "dynamo: {verison: 1.2.0}\nbenchmark:"),
            "spec.yaml:11: dynamo.verison: unknown key 'verison' in layout v1"
            " (did you mean 'version'?)",
            id="misspelt key of a section, v1",
        ),
        pytest.param(
            "v2",
            ("type: sa-bench", "type: sa-bench, repeats: 5"),
            "spec.yaml:11: benchmark.repeats: unknown key 'repeats' in layout v2"
            " (did you mean 'repeat'?)",
            id="misspelt key of the benchmark",
        ),
        pytest.param(
            "v2",
            ("groups:", "accuracy: {file: '{file}-x', benchmark: {type: gsm8k, x: 1}}\ngroups:"),
            "spec.yaml:16: accuracy.benchmark.x: unknown key 'x' in layout v2",
            id="misspelt key of the accuracy benchmark",
        ),
        pytest.param(
            "v1",
            ("kv-cache-dtype: fp8", "kv-cache-dtype: fp8, max-model-len: ''"),
            "spec.yaml:9: engine.args.max-model-len: max-model-len must be a whole number",
            id="flag",
        ),
    ],
)
def test_recipe_schema(dialect: str, edit: tuple[str, str], problem: str, folder: Path) -> None:
    """Each mistake once, however many recipes it spoils."""
    row = "      - {file: b, prefill: 1xTEP8, concurrencies: [4]}\n"
    text = edited(edit, ("    max-model-len: 10240\n", "")) + row
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    result = run(*COMMANDS[0], "--dialect", dialect)
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {problem}")
    assert (result.exit_code, result.stdout) == (3, "")
    assert not (folder / "out").exists()


# --- warnings ---------------------------------------------------------------------------------


KV_CAPACITY = "1 DP x 361.38 requests of 9216 tokens = 361.4 (KV cache assumed)"


@pytest.mark.parametrize(
    ("edits", "warnings"),
    [
        pytest.param(
            [("[4]", "[4, 400]")],
            [f"400 exceeds the decode KV capacity by 38.6 requests: {KV_CAPACITY}"],
            id="KV capacity",
        ),
        pytest.param(
            [("[4]", "[64]"), ("    decode: 1xTEP8", "    decode: 2xTEP8\n    concurrency: 16")],
            ["64 exceeds the decode slots by 16: 2 workers x 1 DP x max-num-seqs 24 = 48"],
            id="decode slots",
        ),
        pytest.param(
            [("[4]", "[900]"), ("    decode: 1xTEP8", "    decode: 1xTEP8\n    concurrency: 4")],
            [
                "900 exceeds the decode slots by 880: 1 DP x max-num-seqs 20 = 20",
                f"900 exceeds the decode KV capacity by 538.6 requests: {KV_CAPACITY}",
            ],
            id="both",
        ),
    ],
)
def test_warning(edits: list[tuple[str, str]], warnings: list[str], folder: Path) -> None:
    (folder / "spec.yaml").write_text(edited(*edits), encoding="utf-8")
    result = run(*COMMANDS[0])
    assert result.stderr.splitlines() == [
        f"warning: a: concurrency {warning}" for warning in warnings
    ]
    assert result.exit_code == 0
    assert (folder / "out" / "a.yaml").is_file()


def test_warning_of_several_recipes_is_given_once(folder: Path) -> None:
    more = "      - {file: b, prefill: 2xTEP8, concurrencies: [400]}\n"
    text = edited(("[4]", "[400]")) + more
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    (line,) = run(*COMMANDS[0]).stderr.splitlines()
    assert line.startswith("warning: a and 1 more: concurrency 400 exceeds the decode KV capacity")


# --- options ----------------------------------------------------------------------------------


FLAGS = ["--model", "model", "--gpu", "gb300", "--layout", "TP4DP4+EP"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["generate"], "Missing argument 'SPEC'."),
        (["generate", "spec.yaml", "--dialect", "v3"], "'v3' is not one of 'v1', 'v2'."),
        (["generate", "spec.yaml", "--out", ""], "is empty; name a folder, or leave it out"),
        (["generate", "spec.yaml", "--chek"], "--check"),
        (["capacity"], "give SPEC, or --model, --gpu and --layout"),
        (["capacity", *FLAGS[:4]], "give SPEC, or --model, --gpu and --layout"),
        (["capacity", "spec.yaml", "--mtp", "3"], "SPEC says everything itself"),
        (["capacity", *FLAGS, "--mtp", "17"], "17 is not in the range 0<=x<=16."),
        (["capacity", *FLAGS, "--isl", "8192"], "--isl and --osl go together"),
        (["capacity", *FLAGS, "--kv-cache-gib", "83 GB"], "'83 GB' is not a size in GiB"),
        (
            ["capacity", *FLAGS, "--kv-cache-gib", "83", "--kv-cache-memory-bytes", "1"],
            "give --kv-cache-gib or --kv-cache-memory-bytes, not both",
        ),
        (["render", "spec.yaml"], "No such command 'render'."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_usage(arguments: list[str], reason: str) -> None:
    before = files_and_folders()
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert reason in result.stderr.splitlines()[-1]
    assert result.stderr.startswith("Usage: ")
    assert files_and_folders() == before


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "exit_code", "problem"),
    [
        (["--model", "nowhere"], 3, "nowhere: there is no such file"),
        (["--gpu", "gb3000"], 3, "GPU 'gb3000' is not known (did you mean 'gb300'?)"),
        (
            ["--layout", "2xTEP8"],
            3,
            "layout '2xTEP8': it is one worker's layout and takes no worker count",
        ),
        (["--layout", "TEP24"], 3, "tensor: 64 attention heads are not divisible by TP 24"),
        (["--engine-version", "new"], 3, "'new' is not an engine version"),
        (["--kv-cache-dtype", "fp9"], 3, "kv-cache-dtype: kv-cache-dtype 'fp9' is not modelled"),
        (["--block-size", "17"], 3, "block-size: block-size 17 is not a multiple of 16 (use 32)"),
        (
            ["--gpu-memory-utilization", "nan"],
            3,
            "gpu-memory-utilization: gpu-memory-utilization must be a share above 0",
        ),
        (["--cudagraph-mode", "fast"], 3, "compilation-config: cudagraph_mode 'fast' is not"),
        (["--attention-backend", "X"], 3, "attention-backend: the kernel blocks of attention"),
        (
            ["--max-num-seqs", "9", "--max-num-batched-tokens", "8"],
            3,
            "max-num-batched-tokens: max-num-batched-tokens 8 is below max-num-seqs 9",
        ),
        (
            ["--isl", "8192", "--osl", "1024", "--max-model-len", "9215"],
            3,
            "max-model-len 9215 is below ISL + OSL = 8192 + 1024 = 9216",
        ),
        (["--layout", "TP1"], 4, "no room for weights: 276.62 GiB x 0.92 = 254.49 GiB per GPU"),
        (["--gpu", "h100"], 4, "no room for weights: 79.18 GiB x 0.92 = 72.85 GiB per GPU"),
        (["--kv-cache-gib", "0.1"], 4, "one request of max-model-len 262144 needs"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_engine_of_options(options: list[str], exit_code: int, problem: str) -> None:
    result = run("capacity", *FLAGS, *options)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert result.stderr.startswith(f"error: {problem}")
    assert all(line.startswith("error: ") for line in result.stderr.splitlines())


# --- errors as JSON ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "exit_code", "kind"),
    [
        (("workload:", "worklaod:"), 3, "invalid-input"),
        (("gpu: gb300", "gpu: h100"), 4, "nothing-fits"),
    ],
    ids=["invalid", "does not fit"],
)
def test_json_error(edit: tuple[str, str], exit_code: int, kind: str, folder: Path) -> None:
    (folder / "spec.yaml").write_text(edited(edit), encoding="utf-8")
    lines = run("capacity", "spec.yaml").stderr.splitlines()
    result = run("capacity", "spec.yaml", "--json")
    assert (result.exit_code, result.stdout) == (exit_code, "")
    document = json.loads(result.stderr)
    assert (document["version"], document["error"]) == (1, kind)
    assert lines == [
        f"error: {problem['source']}:{problem['line']}: {problem['message']}"
        + (f" ({problem['hint']})" if problem["hint"] else "")
        for problem in document["problems"]
    ]


def test_json_error_has_its_place(folder: Path) -> None:
    (folder / "spec.yaml").write_text(edited(("isl: 8192", "isl: .nan")), encoding="utf-8")
    document = json.loads(run("capacity", "spec.yaml", "--json").stderr)
    (problem,) = document["problems"]
    assert (problem["source"], problem["line"]) == ("spec.yaml", 10)


# --- any value anywhere -----------------------------------------------------------------------

Place = tuple[str | int, ...]

VALUES = st.one_of(
    st.sampled_from([None, True, 0, 1, -1, 7, 96, 10**12, 10**60, 0.5, 1.0, [], {}, [None], ""]),
    st.sampled_from(["TEP8", "2xTP4DP4+EP", "DEP8", "TP1PP4", "8x16", "isl * isl", "fp8", "FULL"]),
    st.sampled_from([{"prefill": 1, "decode": 3}, {"layout": "TEP8", "gpus": 8}, {"a": {"b": []}}]),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=3),
)
KEYS = st.one_of(
    st.sampled_from(
        ["mtp", "sizing", "time_limit", "max-num-seqs", "block-size", "kv-cache-dtype"]
    ),
    st.sampled_from(["enforce-eager", "gpu-memory-utilization", "cudagraph-mode", "isl", "type"]),
    st.text(max_size=4),
)


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """The path of every mapping key and list item."""
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for step, item in items:
        yield (*path, step)
        yield from places(item, (*path, step))


PLACES = list(places(yaml.safe_load(SPEC)))


@pytest.fixture(scope="module")
def any_folder(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    return spec_folder(tmp_path_factory.mktemp("any"), repository)


@settings(max_examples=150)
@given(place=st.sampled_from(PLACES), key=st.none() | KEYS, value=VALUES)
def test_any_value_anywhere_is_an_answer_or_an_error_of_one_line(
    place: Place, key: str | None, value: Any, any_folder: Path
) -> None:
    """``value`` replaces what stands at the place, or stands beside it under another key."""
    data = yaml.safe_load(SPEC)
    parent = data
    for step in place[:-1]:
        parent = parent[step]
    beside = key is not None and isinstance(parent, dict)
    parent[key if beside else place[-1]] = value
    text = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
    (any_folder / "spec.yaml").write_text(text, encoding="utf-8")
    result = run("generate", str(any_folder / "spec.yaml"), "--out", str(any_folder / "out"))
    lines = result.stderr.splitlines()
    assert all(line.startswith(("error: ", "warning: ")) for line in lines)
    assert (result.exit_code in (3, 4)) == any(line.startswith("error: ") for line in lines)
    assert result.exit_code in (0, 3, 4)


def test_spec_folder_is_the_committed_model(folder: Path, repository: Path) -> None:
    """The cases above are about a real checkpoint's dimensions."""
    committed = (repository / MODEL / "config.json").read_bytes()
    assert (folder / "model" / "config.json").read_bytes() == committed


@pytest.mark.parametrize(
    "command",
    [
        ("report", "results.jsonl", "spec.yaml", "--out", "results.jsonl"),
        ("report", "results.jsonl", "spec.yaml", "--out", "spec.yaml"),
        ("next", "results.jsonl", "spec.yaml", "--write", "results.jsonl"),
        ("compose", "results.jsonl", "spec.yaml", "--write", "results.jsonl"),
        ("compose", "results.jsonl", "spec.yaml", "--against", "old.yaml", "--write", "old.yaml"),
        ("calibrate", "--results", "results.jsonl", "--out", "./results.jsonl"),
    ],
    ids=" ".join,
)
def test_no_answer_replaces_what_it_is_made_of(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured may have taken days."""
    specs = tmp_path / "recipes/specs"
    specs.mkdir(parents=True)
    (specs.parent / "models").symlink_to(REPOSITORY / "recipes/models")
    spec = (REPOSITORY / "recipes/specs/qwen3.8-2.4t-gb300-8k1k.yaml").read_bytes()
    results = (REPOSITORY / "tests/data/studies/qwen38_synthetic.jsonl").read_bytes()
    before = {"results.jsonl": results, "spec.yaml": spec, "old.yaml": spec}
    for name, content in before.items():
        (specs / name).write_bytes(content)
    monkeypatch.chdir(specs)
    done = run(*command)
    assert (done.exit_code, "which it would replace" in done.stderr) == (3, True)
    assert {name: (specs / name).read_bytes() for name in before} == before
