"""The content-security-policy of the pages that we write."""

import base64
import hashlib

from markupsafe import Markup


def policy_of(script: str) -> Markup:
    """A policy that fetches nothing, and lets nothing run but this script, by its hash.

    Args:
        script: Text of the page's one script.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Markup(
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
