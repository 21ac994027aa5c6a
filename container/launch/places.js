/**
 * Owns where things are in a checkout: the root, what is built, and the tools that an install brings.
 * Does not own the data folder: options.js has that.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

const bin = join(root, "node_modules/.bin");

export const places = {
  root,
  dist: join(root, "dist"),
  agent: join(root, "dist/berth-agent"),
  workerFolder: join(root, "dist/worker"),
  worker: join(root, "dist/worker/index.js"),
  package: join(root, "dist/package"),
  engine: join(root, "container/engine/main.ts"),
  /** Installs and builds of one checkout take turns. */
  checkoutLock: join(root, "dist/lock"),
};

export const tools = {
  /** The Node that wrangler and vitest need; the machine's own may be older. */
  node: join(bin, "node"),
  bun: join(bin, "bun"),
  wrangler: join(bin, "wrangler"),
  vitest: join(bin, "vitest"),
  tsc: join(bin, "tsc"),
  biome: join(bin, "biome"),
  workerd: join(bin, "workerd"),
};
