"""Every call of an API is noted (`emulator.calls`)."""

from __future__ import annotations

from typing import Any

from moto.core.request import Request
from moto.core.responses import BaseResponse

from emulator.calls import CALLS


def count_calls() -> None:
    """Note each request once it is known which call it is."""
    set_up = BaseResponse.setup_class

    def setup_class(self: BaseResponse, request: Request, *arguments: Any, **options: Any) -> None:
        set_up(self, request, *arguments, **options)
        CALLS.note(request.headers.get("Authorization", ""), f"{self.boto3_service_name}:{self._get_action()}")

    BaseResponse.setup_class = setup_class  # type: ignore[method-assign]
