/**
 * Owns what workerd must know of the Worker, read from wrangler.toml so that there is one list.
 * Does not own secrets: those reach workerd by its environment alone.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { written } from "./address.js";
import { root } from "./places.js";

/** Text bindings, each from the environment variable of its name. */
export const fromEnvironment = [
  "BERTH_API_KEYS",
  "BERTH_SECRET",
  "BERTH_ORIGINS",
  "BERTH_SIZES",
  "BERTH_ENGINE_URL",
  "BERTH_ENGINE_SECRET",
];

/**
 * The subset of TOML that wrangler.toml is written in; what is not understood is refused.
 * @param {string} [toml]
 */
export function readWranglerToml(toml = readFileSync(join(root, "wrangler.toml"), "utf8")) {
  const compatibilityDate = /^compatibility_date = "([\d-]+)"$/m.exec(toml)?.[1];
  const objects = toml
    .split(/^(?=\[)/m)
    .filter((table) => table.startsWith("[[durable_objects.bindings]]"))
    .map((table) => ({
      binding: /^name = "(\w+)"$/m.exec(table)?.[1] ?? "",
      className: /^class_name = "(\w+)"$/m.exec(table)?.[1] ?? "",
    }));
  if (
    !compatibilityDate ||
    objects.length === 0 ||
    objects.some((one) => !one.binding || !one.className)
  ) {
    throw new Error("wrangler.toml: no compatibility_date or no durable objects that can be read");
  }
  return { compatibilityDate, objects };
}

/**
 * What an object held stays until V8 has looked for garbage, though the object was let go. By itself V8 puts that off until
 * its heap is many times what is in use: each short-lived sandbox added some 80 KiB to workerd, for hours.
 */
const v8Flags = ["--initial-old-space-size=8", "--optimize-for-size", "--max-semi-space-size=8"];

/**
 * The config of workerd. The bundle stands beside it as worker.js.
 * @param {{ host: string, port: number }} address
 */
export function workerdConfig({ host, port }) {
  const { compatibilityDate, objects } = readWranglerToml();
  const namespaces = objects.map(
    // The unique key is part of every object's identity: another one would lose all of them.
    ({ className }) =>
      `( className = "${className}", uniqueKey = "berth-${className}", enableSql = true ),`,
  );
  const bindings = [
    ...objects.map(
      ({ binding, className }) =>
        `( name = "${binding}", durableObjectNamespace = "${className}" ),`,
    ),
    ...fromEnvironment.map((name) => `( name = "${name}", fromEnvironment = "${name}" ),`),
  ];
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    ( name = "berth", worker = .berth ),
    ( name = "objects", disk = ( path = "objects", writable = true ) ),
    ( name = "loopback", network = ( allow = ["local"] ) ),
  ],
  v8Flags = [ ${v8Flags.map((flag) => `"${flag}"`).join(", ")} ],
  sockets = [ ( name = "http", address = "${written(host, port)}", http = (), service = "berth" ) ],
);

const berth :Workerd.Worker = (
  modules = [ ( name = "index.js", esModule = embed "worker.js" ) ],
  compatibilityDate = "${compatibilityDate}",
  durableObjectNamespaces = [
    ${namespaces.join("\n    ")}
  ],
  durableObjectStorage = ( localDisk = "objects" ),
  globalOutbound = "loopback",
  bindings = [
    ${bindings.join("\n    ")}
  ],
);
`;
}
