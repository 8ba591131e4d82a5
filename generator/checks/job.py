"""What a rule looks at: one job of a recipe file, its model if known, and its siblings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from generator.architecture import ModelArchitecture
from generator.checks.rule import Edit, Hit, SetValue
from generator.checks.siblings import Siblings
from generator.checks.workers import Workers, read_workers, whole
from generator.errors import InvalidInput
from generator.facts import Gpu, gpu
from generator.normal_form import NormalForm, pinned_vllm_version
from generator.recipe.inputs import RecipeFile
from generator.wording import FieldPath, dotted_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job. ``model`` is None where nobody knows it; ``engine_version`` where it is not said."""

    file: RecipeFile
    form: NormalForm
    roles: tuple[Workers, ...]
    model: ModelArchitecture | None
    gpu: Gpu | None
    engine_version: str | None
    siblings: Siblings = field(repr=False)

    def role(self, name: str) -> Workers | None:
        return next((each for each in self.roles if each.role == name), None)

    @property
    def pair(self) -> tuple[Workers, Workers] | None:
        """Prefill and decode of vLLM, which hand over KV cache; None for any other job."""
        prefill, decode = self.role("prefill"), self.role("decode")
        if prefill is None or decode is None or {prefill.engine, decode.engine} != {"vllm"}:
            return None
        return prefill, decode

    @property
    def prefilling(self) -> tuple[Workers, ...]:
        """The roles that compute prompts."""
        return tuple(each for each in self.roles if each.role in ("prefill", "agg"))

    @property
    def decoding(self) -> tuple[Workers, ...]:
        """The roles that generate."""
        return tuple(each for each in self.roles if each.role in ("decode", "agg"))

    @property
    def request_tokens(self) -> tuple[int, int] | None:
        """ISL and OSL of the benchmark; None where it has no fixed ones."""
        isl = whole(self.form.get("benchmark", "isl"))
        osl = whole(self.form.get("benchmark", "osl"))
        return None if isl is None or osl is None else (isl, osl)

    @property
    def concurrencies(self) -> tuple[int, ...]:
        """Concurrencies that the benchmark runs, rising; empty where it gives none."""
        found = self.form.get("benchmark", "concurrencies")
        is_list = isinstance(found, tuple) and all(isinstance(each, int) for each in found)
        return found if is_list else ()

    @property
    def gpus_per_node(self) -> int:
        return whole(self.form.get("resources", "gpus_per_node")) or 4  # srt-slurm's default

    def environment(self, role: str) -> dict[str, Any]:
        """The variables that a role's workers get."""
        every = self.form.below("environment") | self.form.below("roles", role, "env")
        return {str(path[0]): value for path, value in every.items() if len(path) == 1}

    def hit(self, path: FieldPath, message: str, hint: str = "", edit: Edit | None = None) -> Hit:
        """A finding at a neutral path, which is called as the recipe has it."""
        return Hit(
            line=self.form.line(path),
            path=dotted_path(path),
            message=message,
            hint=hint,
            edit=edit,
        )

    def flag_hit(
        self,
        workers: Workers,
        flag: str,
        message: str,
        hint: str = "",
        edit: Edit | None = None,
    ) -> Hit:
        """A finding at an engine flag of a role, such as ``compilation-config.cudagraph-mode``."""
        return self.hit(flag_path(workers.role, flag), message, hint, edit)

    def set_value(self, path: FieldPath, value: Any) -> SetValue | None:
        """The fix that writes a value at a neutral path; None where it is not written as itself."""
        found = self.form.values.get(path)
        if found is None:
            return None
        origin = self.form.variant.origin(found.written_at)
        written = _at(self.form.variant.document.data, origin)
        if type(written) is not type(found.value) or written != found.value:
            return None  # a part of a JSON text, a placeholder, or read in another way than written
        return SetValue(path=origin, old=written, value=value)


def _at(data: Any, path: FieldPath) -> Any:
    """The value at a path of the document; None where the path does not lead through it."""
    for step in path:
        is_inside = isinstance(data, dict) or (isinstance(data, list) and isinstance(step, int))
        if not is_inside or (isinstance(data, dict) and step not in data):
            return None
        data = data[step]
    return data


def flag_path(role: str, flag: str) -> FieldPath:
    """The neutral path of a role's flag."""
    return ("roles", role, "args", *flag.split("."))


def make_job(
    file: RecipeFile, form: NormalForm, model: ModelArchitecture | None, siblings: Siblings
) -> Job:
    """A job with what its rules need to know, read once."""
    return Job(
        file=file,
        form=form,
        roles=read_workers(form),
        model=model,
        gpu=_gpu(form),
        engine_version=pinned_vllm_version(form),
        siblings=siblings,
    )


def _gpu(form: NormalForm) -> Gpu | None:
    try:
        return gpu(str(form.get("resources", "gpu_type")))
    except InvalidInput:
        return None
