/** The bindings of the workerd tests, as vitest.config.ts defines them. */
declare namespace Cloudflare {
  interface GlobalProps {
    mainModule: typeof import("./worker.ts");
  }
  interface Env {
    SANDBOX: DurableObjectNamespace<import("./worker.ts").SandboxObject>;
    DIRECTORY: DurableObjectNamespace<import("./worker.ts").DirectoryObject>;
    PLAN: DurableObjectNamespace<import("./worker.ts").PlanObject>;
    KEYS: DurableObjectNamespace<import("./worker.ts").KeysObject>;
    TEMPLATES: DurableObjectNamespace<import("./worker.ts").TemplatesObject>;
    MACHINE: DurableObjectNamespace<import("./worker.ts").ContainerObject>;
    /** The entry for other Workers, bound as tenant `local`, as tenant `other`, and without a tenant. */
    BERTH: Service<typeof import("./worker.ts").BerthApi>;
    OTHER: Service<typeof import("./worker.ts").BerthApi>;
    /** As tenant `local`, with the rights to read and to lease. */
    LEASER: Service<typeof import("./worker.ts").BerthApi>;
    /** As tenant `local`; people reach Berth at https://berth.example. */
    PUBLIC: Service<typeof import("./worker.ts").BerthApi>;
    NOBODY: Service<typeof import("./worker.ts").BerthApi>;
  }
}
