"""Throughline for Python: compact messages, send a client's calls through the gateway, read its sessions and usage.

The wheel also carries the command `throughline`. Nothing outside of the standard library is needed.
"""

from .clients import gateway_url, wrap
from .engine import Compaction, Engine, EngineError
from .gateway import Gateway, GatewayError, Session, Usage

__all__ = [
    "Compaction",
    "Engine",
    "EngineError",
    "Gateway",
    "GatewayError",
    "Session",
    "Usage",
    "gateway_url",
    "wrap",
]
