/** The variables that an operator sets: which of them the Worker gets, and which are misspelt. */

/** Passed on to the Worker as they are; config.ts checks them. */
const workerVariables = [
  "BERTH_ORIGINS",
  "BERTH_PUBLIC_URL",
  "BERTH_PORTS_DOMAIN",
  "BERTH_SIZES",
  "BERTH_QUOTAS",
  "BERTH_ACCESS_LOG",
];

/**
 * Those that are set, also to nothing: an empty BERTH_PORTS_DOMAIN is a choice.
 * @param {Record<string, string | undefined>} env
 * @returns {Record<string, string>}
 */
export function setVariables(env) {
  return Object.fromEntries(
    workerVariables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  );
}

/** Others of the server, and those of the command, which may be set in the same shell. */
const others = [
  ...["BERTH_API_KEYS", "BERTH_ADMIN_KEYS", "BERTH_METRICS_KEYS", "BERTH_DISK_FREE_MIN"],
  ...["BERTH_PORT", "BERTH_HOST", "BERTH_DATA"],
  ...["BERTH_URL", "BERTH_KEY", "BERTH_ADMIN_KEY", "BERTH_LEASE", "BERTH_LEASE_SANDBOX"],
  ...["BERTH_DEBUG", "BERTH_TRACE", "BERTH_SCOPE_USER"],
];

/**
 * Variables without an effect: most are misspelt.
 * @param {Record<string, string | undefined>} env
 */
export function unknownVariables(env) {
  const known = [...workerVariables, ...others];
  return Object.keys(env).filter(
    (name) =>
      name.startsWith("BERTH_") && !name.startsWith("BERTH_ENGINE_") && !known.includes(name),
  );
}
