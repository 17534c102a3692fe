"""Merge settings of job files from parts."""

from typing import Any


def merged(*parts: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """Merge settings section by section; a later key of a section replaces an earlier one."""
    result: dict[str, Any] = {}
    for part in (*parts, sections):
        for section, settings in part.items():
            earlier = result.get(section)
            result[section] = {**earlier, **settings} if isinstance(earlier, dict) and isinstance(settings, dict) else settings
    return result
