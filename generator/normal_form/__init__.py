"""What a recipe means apart from how it is written: one set of paths for every layout."""

from generator.normal_form.defaults import (
    RecipeDefault,
    canonical,
    default_value,
    recipe_defaults,
    same_value,
)
from generator.normal_form.expressible import Inexpressible, inexpressible
from generator.normal_form.form import FormValue, NormalForm, normal_form
from generator.normal_form.pinned_version import pinned_vllm_version

__all__ = [
    "FormValue",
    "Inexpressible",
    "NormalForm",
    "RecipeDefault",
    "canonical",
    "default_value",
    "inexpressible",
    "normal_form",
    "pinned_vllm_version",
    "recipe_defaults",
    "same_value",
]
