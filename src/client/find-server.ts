/**
 * Finds the server that this user runs on this machine, by the record that it leaves while it runs. Platforms without
 * files, such as browsers, have none.
 */

/** The parts of Node's `process` and modules that are used here; Bun and Deno have them too. */
type Host = {
  env?: Record<string, string | undefined>;
  getBuiltinModule?(name: string): Record<string, unknown> | undefined;
};

export type ReadFile = (path: string, encoding: "utf8") => string;

export type LocalServer = { url: string; key: string };

/** What the launcher writes; see container/launch/server-record.js. */
type ServerRecord = {
  url: string;
  /** The path of the file that contains the key. */
  key: string;
  pid: number;
  /** Identifies the process together with its PID and the boot. */
  startTime: string;
  boot: string;
};

function host(): Host | undefined {
  return (globalThis as { process?: Host }).process;
}

/** An environment variable; undefined if it is empty, or if the platform has none. */
export function readVariable(name: string): string | undefined {
  try {
    const value = host()?.env?.[name]?.trim();
    return value === "" ? undefined : value;
  } catch {
    // Deno refuses to read it without a permission.
    return undefined;
  }
}

/** Undefined: this user runs no server, or the record is of one that has ended. */
export function findLocalServer(): LocalServer | undefined {
  try {
    const readFile = host()?.getBuiltinModule?.("node:fs")?.readFileSync as ReadFile | undefined;
    return readFile === undefined ? undefined : readLocalServer(readFile, readVariable);
  } catch {
    return undefined;
  }
}

export function readLocalServer(
  readFile: ReadFile,
  variable: (name: string) => string | undefined,
): LocalServer | undefined {
  for (const folder of recordFolders(variable)) {
    const found = readRecordedServer(readFile, `${folder}/berth/server.json`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The server of one record. `keyPath` replaces the path in the record. */
export function readRecordedServer(
  readFile: ReadFile,
  path: string,
  keyPath?: string,
): LocalServer | undefined {
  const record = readRecord(readFile, path);
  if (record === undefined || !isRunning(readFile, record)) return undefined;
  const key = readOrUndefined(readFile, keyPath ?? record.key)?.trim();
  return key === undefined || key === "" ? undefined : { url: record.url, key };
}

/** The first one that can be written has the record. */
function recordFolders(variable: (name: string) => string | undefined): string[] {
  const home = variable("HOME");
  const config =
    variable("XDG_CONFIG_HOME") ?? (home === undefined ? undefined : `${home}/.config`);
  return [variable("XDG_RUNTIME_DIR"), config].filter((folder) => folder !== undefined);
}

function readRecord(readFile: ReadFile, path: string): ServerRecord | undefined {
  try {
    const record = JSON.parse(readFile(path, "utf8")) as ServerRecord;
    return typeof record.url === "string" && typeof record.key === "string" ? record : undefined;
  } catch {
    return undefined;
  }
}

/** The process that wrote the record, and not another one with its PID: only that one may get its key. */
function isRunning(readFile: ReadFile, { pid, startTime, boot }: ServerRecord): boolean {
  if (readOrUndefined(readFile, "/proc/sys/kernel/random/boot_id")?.trim() !== boot) return false;
  const stat = readOrUndefined(readFile, `/proc/${pid}/stat`) ?? "";
  // The name in parentheses may contain anything, so fields are counted from its end.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] !== "Z" && fields[19] === startTime;
}

function readOrUndefined(readFile: ReadFile, path: string): string | undefined {
  try {
    return readFile(path, "utf8");
  } catch {
    return undefined;
  }
}
