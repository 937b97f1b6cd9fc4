"""Made-up result rows: no number in here was measured."""

from __future__ import annotations

from typing import Any

CORRUPTIONS = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
)

STAMP: dict[str, Any] = {
    "run": "made",
    "model": "zoo:made",
    "weights": "made.th",
    "fingerprint": "f" * 16,
    "data": "made10",
    "severity": 5,
    "images": 10_000,
    "batch": 100,
    "order": "dataset",
    "reset": "corruption",
    "predict": "before",
    "horizon": None,
    "oracle_every": 0,
    "full_batch": None,
    "corruption_seed": 0,
    "threads": 1,
    "channels_last": False,
    "device": "cpu",
    "versions": {"synaptune": "0", "torch": "9.9"},
    "status": "ok",
    "options": {},
    "seed": 0,
}


def row(method: str, corruption: str = "fog", error: float | None = 20.0, **changes: Any) -> dict[str, Any]:
    """One row; `error` is that before the update."""
    made = STAMP | {"method": method, "corruption": corruption, "error_online": error}
    if corruption == "clean":
        made["severity"] = 0
    return made | changes


def failed(
    method: str, corruption: str = "fog", status: str = "failed", *, why: str = "out of memory", **changes: Any
) -> dict[str, Any]:
    """A row without a number, as it is before anything could be known."""
    unknown = {"weights": "", "fingerprint": None, "images": None, "versions": {}}
    return row(method, corruption, None, status=status, **(unknown | changes)) | {"error": why}


def table(**errors: list[float]) -> list[dict[str, Any]]:
    """Rows of several methods over the first corruptions."""
    return [
        row(method, corruption, error)
        for method, values in errors.items()
        for corruption, error in zip(CORRUPTIONS, values, strict=False)
    ]


def full_row(method: str, corruption: str, error: float, *, batches: int = 30, **changes: Any) -> dict[str, Any]:
    """A row with everything that a row may hold."""
    steps = range(batches)
    return row(
        method,
        corruption,
        error,
        error_after=error - 0.2,
        error_full=error - 1.0,
        error_oracle=error - 1.5,
        ece=error / 3,
        ms_per_batch_p50=12.5 if method == "source" else 40.0,
        ms_per_batch_p95=15.0 if method == "source" else 55.0,
        forwards=10_000,
        backwards=0 if method == "source" else 10_000,
        peak_mb=300.0 if method == "source" else 420.0,
        weight_distance=0.0 if method == "source" else 0.031,
        error_per_batch=[error + (step % 3) - 1 for step in steps],
        error_per_stage=[[0, error + 2], [10, error], [20, error - 1.5]],
        entropy_per_batch=[0.5 - 0.005 * step for step in steps],
        drift_per_batch=[0.2 + 0.01 * (step % 5) for step in steps],
        weight_distance_per_batch=[0.001 * step for step in steps],
        predicted_per_class=[1200, 800, *[1000] * 8]
        if method == "source"
        else [1000 + 10 * place for place in range(-5, 5)],
        labels_per_class=[1000] * 10,
        class_names=["plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"],
        images=10_000,
        batch=-(-10_000 // batches),
        recipe_digest=f"digest-{corruption}",
        **changes,
    )


def full_run(methods: dict[str, float], corruptions: tuple[str, ...] = CORRUPTIONS) -> list[dict[str, Any]]:
    """A run of several methods, each at its own level."""
    return [
        full_row(method, corruption, level + place)
        for method, level in methods.items()
        for place, corruption in enumerate(corruptions)
    ]
