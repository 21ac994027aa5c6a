/**
 * Owns how the tests run: `node` has the real parts and programs, `objects` runs inside workerd.
 * The one place that names the pool package of the second.
 */
import { createHash } from "node:crypto";
import { availableParallelism } from "node:os";
import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";
import { contractSizes } from "./test/contract/sizes.ts";

const sha256 = (key: string) => createHash("sha256").update(key).digest("hex");

/** Each fault plays its tests again: those of leases and keys are for every run, all of them are asked for. */
const longLists =
  process.env.MUTANTS === "all"
    ? []
    : ["members", "plans", "calls"].map((list) => `test/mutation/${list}.test.ts`);

/** What miniflare calls the Worker itself; it is not a dependency of ours to import it from. */
const kCurrentWorker = Symbol.for(
  "miniflare.kCurrentWorker",
) as typeof import("miniflare").kCurrentWorker;

/** The entry that other Workers bind, as each of them would see it. */
const bound = (props: Record<string, unknown>) => ({
  name: kCurrentWorker,
  entrypoint: "BerthApi",
  props,
});

export default defineConfig({
  test: {
    // More than cores: most tests wait for processes more than they compute.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    // What the parts log is shown for a test that fails.
    silent: "passed-only",
    coverage: { provider: "v8", include: ["src/**/*.ts"], reporter: ["text-summary", "html"] },
    projects: [
      {
        // The whole Worker runs in Node too, over a platform in memory.
        resolve: {
          alias: {
            "cloudflare:workers": new URL("./test/fakes/workers.ts", import.meta.url).pathname,
          },
        },
        test: {
          name: "node",
          include: ["test/**/*.test.ts"],
          exclude: ["test/workerd/**", "test/docker/**", ...longLists],
          globalSetup: ["test/global-setup.ts"],
          // Only a hang takes that long, also where two cores are shared with others.
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
      {
        plugins: [
          cloudflareTest({
            main: "./test/workerd/worker.ts",
            // Given here and not by wrangler.toml: the pool's own wrangler is older than what that uses.
            miniflare: {
              compatibilityDate: "2026-08-15",
              durableObjects: {
                SANDBOX: { className: "SandboxObject", useSQLite: true },
                DIRECTORY: { className: "DirectoryObject", useSQLite: true },
                PLAN: { className: "PlanObject", useSQLite: true },
                MACHINE: { className: "MachineObject", useSQLite: true },
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
                BERTH_ORIGINS: "https://app.test",
                BERTH_SIZES: contractSizes,
                BERTH_SECRET: "the secret of the object tests, which guards nothing",
              },
            },
          }),
        ],
        test: {
          name: "objects",
          include: ["test/workerd/**/*.test.ts"],
          // Only a hang takes that long, also where two cores are shared with others.
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
