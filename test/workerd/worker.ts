/**
 * The Worker that the object tests run: the real door and objects over containers in memory.
 */

import { SandboxObject as RealSandboxObject } from "../../src/objects/sandbox/object.ts";
import type { Container } from "../../src/runtime/runtime.ts";
import { containerIn } from "./machine.ts";

export { BerthApi, DirectoryObject, default, PlanObject } from "../../src/index.ts";
export { MachineObject } from "./machine.ts";

export class SandboxObject extends RealSandboxObject {
  protected override openContainer(id: string): Container {
    return containerIn(id);
  }
}
