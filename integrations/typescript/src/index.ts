/** Throughline for TypeScript: compact messages, send a client's calls through the gateway, read its sessions and usage. */

export { Engine, EngineError, type Compaction, type EngineOptions, type Message, type Wire } from "./engine.js";
export { Gateway, GatewayError, gatewayUrl, type Session, type Usage } from "./gateway.js";
export { wrap } from "./clients.js";
