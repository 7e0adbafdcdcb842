"""Strict models: unknown keys are errors with the nearest valid name, and everything is frozen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sembench.core.errors import SembenchError, did_you_mean, shortened

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
# Of what is named there: it becomes a part of file names.
OwnName = Annotated[Name, Field(max_length=100)]


def _stays_below(path: str) -> str:
    # An empty part is that of a leading slash, of a trailing one, or of two in a row.
    if "\\" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(f"'{shortened(path)}' must be a relative path that stays in its folder")
    if not path.isprintable() or any(len(part.encode()) > 200 for part in path.split("/")):
        raise ValueError(f"'{shortened(path)}' has characters that do not print, or more than a file name may have")
    return path


RelativePath = Annotated[str, AfterValidator(_stays_below)]


def _is_one_file(path: str) -> str:
    if "{" in path or "}" in path:
        raise ValueError(f"'{path}' has a brace, which Snakemake takes for a wildcard; write another name")
    return path


# Of a file that the workflow writes.
OutputPath = Annotated[RelativePath, AfterValidator(_is_one_file)]


class Strict(BaseModel):
    """Base of everything that is read from YAML or JSON. Numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def later(default: Any, *, was: Any, **options: Any) -> Any:
    """Declare a parameter that was added when there were runs already.

    Args:
        default: what it is where nobody says.
        was: what was done before there was the parameter; with this value it is no part of any key, so the artefacts
            of that time keep their names.
        **options: as of ``Field``.
    """
    return Field(default, json_schema_extra={"was": was}, **options)


def deciding(config: Strict) -> dict[str, Any]:
    """Return the parameters that enter a key: all of them, defaults included, but see ``later``."""
    before = {
        name: extra["was"]
        for name, field in type(config).model_fields.items()
        if isinstance(extra := field.json_schema_extra, dict) and "was" in extra
    }
    values = config.model_dump(mode="json")
    return {name: value for name, value in values.items() if name not in before or value != before[name]}


Model = TypeVar("Model", bound=BaseModel)
Merged = dict[str, Any]


def merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> Merged:
    """Return ``base`` with ``overlay`` laid over it: mappings merge key by key, anything else is replaced.

    A mapping that names another ``kind`` replaces the one below it whole: its keys mean nothing to the new kind.
    """
    result = dict(base)
    for key, value in overlay.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and _same_kind(old, value):
            result[key] = merged(old, value)
        else:
            result[key] = value
    return result


def _same_kind(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return bool(new.get("kind", old.get("kind")) == old.get("kind"))


def parse(model: type[Model], value: Any, where: str) -> Model:
    """Validate ``value`` as ``model``.

    Raises:
        SembenchError: the first problem as one sentence that starts with ``where``.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise SembenchError(f"{where}: {_explain(model, error)}") from None


def _explain(model: type[BaseModel], error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    keys = [str(part) for part in problem["loc"]]
    place = ".".join(keys)
    if problem["type"] == "extra_forbidden":
        fields = _fields_at(model, keys[:-1])
        return f"unknown key '{place}'" + (did_you_mean(keys[-1], fields) or f"; known: {', '.join(sorted(fields))}")
    if problem["type"] == "missing":
        return f"the key '{place}' is missing; add it"
    message = problem["msg"].removeprefix("Value error, ")
    given = problem.get("input")
    what = f" (given: {shortened(repr(given))})" if isinstance(given, str | int | float | bool | None) else ""
    return f"key '{place}': {message}{what}" if place else message


def _fields_at(model: type[BaseModel], keys: list[str]) -> list[str]:
    """Return the field names that are valid below ``keys``, walking through lists, maps and unions."""
    current: list[type[BaseModel]] = [model]
    for key in keys:
        found = [
            inner for m in current if key in m.model_fields for inner in _models_in(m.model_fields[key].annotation)
        ]
        current = found or current
    return [name for m in current for name in m.model_fields]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [inner for part in getattr(annotation, "__args__", ()) for inner in _models_in(part)]
