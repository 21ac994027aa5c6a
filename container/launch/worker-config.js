/**
 * Generates workerd's configuration of the Worker from wrangler.toml. Secrets reach workerd only through its
 * environment.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { formatAddress } from "./address.js";
import { paths, root } from "./paths.js";

/** Text bindings; each has the value of the environment variable with its name. */
const environmentBindings = [
  "BERTH_API_KEYS",
  "BERTH_ADMIN_KEYS",
  "BERTH_METRICS_KEYS",
  "BERTH_PUBLIC_URL",
  "BERTH_ACCESS_LOG",
  "BERTH_SECRET",
  "BERTH_ORIGINS",
  "BERTH_SIZES",
  "BERTH_QUOTAS",
  "BERTH_PORTS_DOMAIN",
  "BERTH_ENGINE_URL",
  "BERTH_ENGINE_SECRET",
  "BERTH_SERVER_RUN",
];

/**
 * Reads the subset of TOML that wrangler.toml uses and refuses anything else.
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
    objects.some(({ binding, className }) => !binding || !className)
  ) {
    throw new Error("wrangler.toml: no compatibility_date or no durable objects that can be read");
  }
  return { compatibilityDate, objects };
}

/**
 * Makes V8 collect garbage earlier. By default it waits until its heap is many times the size in use, so that each
 * short-lived sandbox keeps some 80 KiB of workerd's memory for hours.
 */
const v8Flags = ["--initial-old-space-size=8", "--optimize-for-size", "--max-semi-space-size=8"];

/**
 * Returns workerd's configuration; it expects the bundle next to it as worker.js.
 * @param {{ host: string, port: number, dashboard?: string }} options  the folder of the dashboard's files
 */
export function workerdConfig({ host, port, dashboard = paths.dashboard }) {
  const { compatibilityDate, objects } = readWranglerToml();
  const namespaces = objects.map(
    // The unique key is part of every object's identity: changing it would lose all objects.
    ({ className }) =>
      `( className = "${className}", uniqueKey = "berth-${className}", enableSql = true ),`,
  );
  const bindings = [
    ...objects.map(
      ({ binding, className }) =>
        `( name = "${binding}", durableObjectNamespace = "${className}" ),`,
    ),
    `( name = "ASSETS", service = "dashboard" ),`,
    ...environmentBindings.map((name) => `( name = "${name}", fromEnvironment = "${name}" ),`),
  ];
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    ( name = "berth", worker = .berth ),
    ( name = "objects", disk = ( path = "objects", writable = true ) ),
    ( name = "dashboard", disk = ${JSON.stringify(dashboard)} ),
    ( name = "loopback", network = ( allow = ["local"] ) ),
  ],
  v8Flags = [ ${v8Flags.map((flag) => `"${flag}"`).join(", ")} ],
  sockets = [ ( name = "http", address = "${formatAddress(host, port)}", http = (), service = "berth" ) ],
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
