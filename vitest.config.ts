/**
 * Configures the three test projects: `unit` (Node, no server), `workerd` (inside workerd) and `system` (real servers).
 * `npm test` runs the first two, `npm run test:system` the third; see test/run.js.
 */
import { createHash } from "node:crypto";
import { availableParallelism } from "node:os";
import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";
import { contractSizes } from "./test/contract/sizes.ts";
import { LongestFirst } from "./test/longest-first.ts";

const sha256 = (key: string) => createHash("sha256").update(key).digest("hex");

/** Runs in the system tier: it starts servers, kills processes, floods connections, or waits for real minutes. */
const systemTests = [
  "test/system/**/*.test.ts",
  "test/security/**/*.test.ts",
  "test/engine/**/*.test.ts",
  "test/chaos/chaos.test.ts",
  "test/contract/container.test.ts",
  // These start servers, or wait for the agent's own time limits of 10 to 30 seconds, or load it for as long.
  "test/agent/**/*-load.test.ts",
  "test/agent/archive/archive-ends.test.ts",
  "test/agent/channel/channel-deferred.test.ts",
  "test/agent/exec/fence.test.ts",
  "test/agent/processes/ports.test.ts",
  "test/agent/processes/process-log.test.ts",
  "test/agent/processes/process-name.test.ts",
  "test/agent/processes/process-stdin.test.ts",
];

/** The name that miniflare gives to the Worker itself; importing it would need a dependency on miniflare. */
const kCurrentWorker = Symbol.for(
  "miniflare.kCurrentWorker",
) as typeof import("miniflare").kCurrentWorker;

/** The entry point that another Worker binds, with the props of that binding. */
const bound = (props: Record<string, unknown>) => ({
  name: kCurrentWorker,
  entrypoint: "BerthApi",
  props,
});

/** The whole Worker also runs in Node, on an in-memory platform. */
const resolve = {
  alias: {
    "cloudflare:workers": new URL("./test/fakes/cloudflare-workers.ts", import.meta.url).pathname,
  },
};

// Only a hang takes this long, even where others share the cores.
const timeouts = { testTimeout: 120_000, hookTimeout: 180_000 };

export default defineConfig({
  test: {
    // More workers than cores, because most tests wait for processes more than they compute.
    maxWorkers: availableParallelism() * 2,
    sequence: { sequencer: LongestFirst },
    // Logs of the parts are shown for a failed test only.
    silent: "passed-only",
    coverage: { provider: "v8", include: ["src/**/*.ts"], reporter: ["text-summary", "html"] },
    projects: [
      {
        resolve,
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/workerd/**", "test/docker/**", ...systemTests],
          globalSetup: ["test/global-setup.ts"],
          ...timeouts,
        },
      },
      {
        resolve,
        test: {
          name: "system",
          include: systemTests,
          globalSetup: ["test/global-setup.ts", "test/system/server-pool.ts"],
          ...timeouts,
        },
      },
      {
        plugins: [
          cloudflareTest({
            main: "./test/workerd/worker.ts",
            // Not read from wrangler.toml, because the pool brings an older wrangler than that file needs.
            miniflare: {
              compatibilityDate: "2026-08-15",
              durableObjects: {
                SANDBOX: { className: "SandboxObject", useSQLite: true },
                DIRECTORY: { className: "DirectoryObject", useSQLite: true },
                PLAN: { className: "PlanObject", useSQLite: true },
                KEYS: { className: "KeysObject", useSQLite: true },
                TEMPLATES: { className: "TemplatesObject", useSQLite: true },
                MACHINE: { className: "ContainerObject", useSQLite: true },
              },
              serviceBindings: {
                BERTH: bound({ tenant: "local" }),
                OTHER: bound({ tenant: "other" }),
                LEASER: bound({ tenant: "local", rights: ["read", "lease"] }),
                PUBLIC: bound({ tenant: "local", url: "https://berth.example" }),
                NOBODY: bound({}),
              },
              bindings: {
                BERTH_API_KEYS: [
                  `local:${sha256("berth_local_of_the_tests")}`,
                  `other:${sha256("berth_other_of_the_tests")}`,
                ].join(","),
                BERTH_ADMIN_KEYS: sha256("berth_administrator_of_the_tests"),
                BERTH_ORIGINS: "https://app.test",
                BERTH_SIZES: contractSizes,
                BERTH_SECRET: "the secret of the object tests, which guards nothing",
              },
            },
          }),
        ],
        test: {
          name: "workerd",
          include: ["test/workerd/**/*.test.ts"],
          ...timeouts,
        },
      },
    ],
  },
});
