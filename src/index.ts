/** The entry point of the Worker: exports the classes that the platform finds by name. */
import { createApp } from "./worker/app.ts";

export { DirectoryObject } from "./objects/directory/object.ts";
export { KeysObject } from "./objects/keys/object.ts";
export { PlanObject } from "./objects/plan/object.ts";
export { SandboxObject } from "./objects/sandbox/object.ts";
export { Beat } from "./objects/shared/beat.ts";
export { TemplatesObject } from "./objects/templates/object.ts";
export { AgentCallback } from "./worker/agent-callback.ts";
export { ContainerProxy } from "./worker/egress-proxy.ts";
export { BerthEntry as BerthApi } from "./worker/rpc.ts";

export default createApp();
