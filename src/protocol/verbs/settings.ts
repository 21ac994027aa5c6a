/** Rows of the verbs on the settings of a sandbox, on the services that they name, and on what it uses. */
import { response, type Schemas, sandboxPath, type VerbRow } from "./row.ts";

const settings = `${sandboxPath}/settings` as const;

export const settingsRows = (schemas: Schemas) =>
  ({
    getSettings: {
      method: "GET",
      path: settings,
      call: "settings",
      summary: "Get the settings and their version",
      right: "read",
      responses: { 200: response(schemas.settingsSchema, "The settings now.") },
    },
    patchSettings: {
      method: "PATCH",
      path: settings,
      summary: "Change settings of a sandbox in one step",
      description:
        "Fields that are left out stay; `null` removes a limit. Deadlines count from when they would have begun: a shorter idle time may pause the sandbox at once. New variables reach the next command; sessions and running programs keep theirs.",
      example: { body: { idleTimeoutMs: 60_000, env: { STAGE: "test", OLD: null } } },
      right: "lifecycle",
      body: schemas.settingsPatchSchema,
      repeatable: true,
      responses: { 200: response(schemas.settingsSchema, "The settings after the change.") },
      errors: ["version_mismatch", "unsupported", "sandbox_destroyed"],
    },
    listServices: {
      method: "GET",
      path: `${sandboxPath}/services`,
      call: "services",
      summary: "List the services in the order in which they start",
      description: "Never starts a container.",
      right: "read",
      agent: true,
      whenStopped: "empty list",
      responses: { 200: response(schemas.servicesSchema, "Empty if no container runs.") },
    },
    getMetrics: {
      method: "GET",
      path: `${sandboxPath}/metrics`,
      call: "metrics",
      summary: "Get what the sandbox used over the last hour, and uses now",
      description:
        "One measurement for every 10 seconds of the present container, and one of this moment. Never starts a container.",
      example: { query: { last: 6 } },
      right: "read",
      agent: true,
      whenStopped: "empty list",
      query: schemas.metricsQuerySchema,
      responses: { 200: response(schemas.metricsSchema, "Empty if no container runs.") },
    },
  }) as const satisfies Record<string, VerbRow>;
