"""Settings of job files, put together from parts."""

from typing import Any


def merged(*parts: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """Merge settings section by section; a later key of a section replaces an earlier one."""
    found: dict[str, Any] = {}
    for part in (*parts, sections):
        for section, settings in part.items():
            known = found.get(section)
            found[section] = {**known, **settings} if isinstance(known, dict) and isinstance(settings, dict) else settings
    return found
