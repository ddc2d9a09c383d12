"""``import cupyx`` before ``cupy``: see there."""

import cupy  # noqa: F401  it puts the fake's cupyx in this module's place
