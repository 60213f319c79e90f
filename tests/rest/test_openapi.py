"""Requests made up from the OpenAPI description: none of them breaks the server."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from tests.rest.memory_flows import FLOW, MemoryFlows
from tests.rest.memory_host import MemoryHost

from mirrorspark.rest.app import make_app

EXAMPLES_MAX = 10
"""For each of about 50 operations."""
schema = schemathesis.openapi.from_asgi("/openapi.json", make_app(MemoryHost(), flows=MemoryFlows()))


@schema.parametrize()
@settings(max_examples=EXAMPLES_MAX, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_no_request_breaks_the_server(case: Any) -> None:
    if len(case.path_parameters.get("flow", "")) % 2:  # half of them about a flow that is there
        case.path_parameters["flow"] = FLOW
    case.call_and_validate(checks=(not_a_server_error,))
