"""How source models are trained: the options of a recipe, and what the networks of the zoo change of it."""

from __future__ import annotations

from markup import alternatives, cell, code, table
from synaptune.models import zoo
from synaptune.models.source_recipes import data_for, recipe_for
from synaptune.models.training_recipe import TrainingRecipe


def recipe_options() -> str:
    """List every option of a recipe."""
    rows = [
        (code(name), alternatives(spelled), code(repr(default)), cell(meaning))
        for name, spelled, default, meaning in TrainingRecipe.describe()
    ]
    return table(("option", "values", "default", "meaning"), rows)


def recipes() -> str:
    """List what each network of the zoo is trained on, and the options that are not at their default."""
    rows = [(code(name), code(data_for(name) or "--data"), _changed(recipe_for(name))) for name in zoo.names()]
    return table(("network", "data", "options"), rows)


def _changed(recipe: TrainingRecipe) -> str:
    usual = TrainingRecipe().as_dict()
    changed = {name: value for name, value in recipe.as_dict().items() if value != usual[name]}
    return code(", ".join(f"{name}={value}" for name, value in changed.items())) if changed else "the defaults"
