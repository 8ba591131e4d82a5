"""What a recipe means apart from how it is written: one set of paths for every layout."""

from generator.normal_form.form import FormValue, NormalForm, normal_form

__all__ = ["FormValue", "NormalForm", "normal_form"]
