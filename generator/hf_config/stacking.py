"""Which kind of layer stands where in the stack."""

from __future__ import annotations

from generator.hf_config.fields import Fields

MAX_LAYERS = 4096
"""More layers than any model has; a config that claims more is broken, not large."""

_LETTERS = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}


def layer_kinds(fields: Fields, layers: int) -> list[str]:
    """``layer_types``, or every ``full_attention_interval``-th layer a full attention.

    Always ``layers`` entries of "full_attention" or "linear_attention"; a wrong list is noted.
    """
    if "layer_types" in fields:
        return _checked_types(fields, layers)
    interval = fields.integer("full_attention_interval")
    return [
        "linear_attention" if (index + 1) % interval else "full_attention"
        for index in range(layers)
    ]


def only_full_attention(fields: Fields, layers: int) -> None:
    """Check a ``layer_types`` list of a model that has nothing but full attention."""
    if "layer_types" not in fields:
        return
    kinds = _checked_types(fields, layers)
    if "linear_attention" in kinds:
        index = kinds.index("linear_attention")
        fields.refuse(f"layer_types[{index}]", f"linear_attention in a {_kind(fields)} decoder")


def pattern_kinds(fields: Fields, letters_field: str, names_field: str) -> list[str]:
    """Nemotron-H's layers, from a string of letters or from a list of names.

    Unknown letters and names are refused and left out.
    """
    if letters_field in fields:
        letters = fields.text(letters_field)
        entries = [(letters_field, letter, _LETTERS.get(letter)) for letter in letters]
    elif names_field in fields:
        names = fields.texts(names_field)
        known = _LETTERS.values()
        entries = [
            (f"{names_field}[{index}]", name, name if name in known else None)
            for index, name in enumerate(names)
        ]
    else:
        fields.note(letters_field, "is missing", f"the layers stand there or in {names_field}")
        return []
    if len(entries) > MAX_LAYERS:
        fields.note(letters_field, f"has {len(entries)} layers, at most {MAX_LAYERS} are read")
        return []
    for path, entry, kind in entries:
        if kind is None:
            fields.refuse(path, f"'{entry}'")
    return [kind for _, _, kind in entries if kind is not None]


def _checked_types(fields: Fields, layers: int) -> list[str]:
    kinds = fields.texts("layer_types")
    if fields.usable("layer_types", "num_hidden_layers") and len(kinds) != layers:
        message = f"has {len(kinds)} entries for {layers} layers"
        fields.note("layer_types", message, "one entry for each of num_hidden_layers")
    known = [
        "linear_attention" if kind == "linear_attention" else "full_attention"
        for kind in kinds[:layers]
    ]
    return known + ["full_attention"] * (layers - len(known))


def _kind(fields: Fields) -> str:
    return str(fields.raw("model_type") or "full-attention")
