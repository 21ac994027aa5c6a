/** The Worker of the workerd tests: the real entry and objects over containers in memory. */
import { SandboxObject as RealSandboxObject } from "../../src/objects/sandbox/object.ts";
import type { ContainerRuntime } from "../../src/runtime/runtime.ts";
import { runtimeOf } from "./container.ts";

export {
  BerthApi,
  DirectoryObject,
  default,
  KeysObject,
  PlanObject,
  TemplatesObject,
} from "../../src/index.ts";
export { ContainerObject } from "./container.ts";

export class SandboxObject extends RealSandboxObject {
  protected override openRuntime(id: string): ContainerRuntime {
    return runtimeOf(id);
  }
}
