/**
 * Records where this server is and where its key is, so that commands and programs of the same user find it. The record
 * names this process, so that what it leaves after a crash is noticed. See src/client/find-server.ts for reading it.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bootId, startTimeOf } from "./process-record.js";

/** @typedef {{ url: string, key: string, pid: number, startTime: string, boot: string }} ServerRecord */

/**
 * Writes the record into the data folder and, unless another server that runs has one there, into this user's folder.
 * @param {{ url: string, data: string }} server
 * @param {NodeJS.ProcessEnv} env
 * @returns {{ isFound: boolean, remove: () => void }}  isFound: without options, this user's commands find this server
 */
export function writeServerRecord({ url, data }, env) {
  const startTime = startTimeOf(process.pid) ?? "";
  const record = { url, key: join(data, "key"), pid: process.pid, startTime, boot: bootId() };
  const written = [join(data, "server.json")].filter((path) => tryWrite(path, record));
  const own = userFolders(env).map((folder) => join(folder, "berth/server.json"));
  const isTaken = own.some(isOfRunningServer);
  // The first folder that can be written: a runtime folder may not exist.
  const path = isTaken ? undefined : own.find((path) => tryWrite(path, record));
  if (path !== undefined) written.push(path);
  return {
    isFound: path !== undefined,
    remove: () => {
      for (const path of written)
        if (readRecord(path)?.pid === process.pid) rmSync(path, { force: true });
    },
  };
}

/** @param {NodeJS.ProcessEnv} env */
function userFolders({ XDG_RUNTIME_DIR, XDG_CONFIG_HOME, HOME }) {
  const config = XDG_CONFIG_HOME || (HOME ? join(HOME, ".config") : "");
  return [XDG_RUNTIME_DIR ?? "", config].filter((folder) => folder !== "");
}

/** @type {(path: string, record: ServerRecord) => boolean} */
function tryWrite(path, record) {
  const temporary = `${path}.${process.pid}`;
  try {
    mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
    writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600 });
    renameSync(temporary, path);
    return true;
  } catch {
    // The server works without; its users name it by BERTH_URL then.
    return false;
  }
}

/** @param {string} path */
function isOfRunningServer(path) {
  const record = readRecord(path);
  return record?.boot === bootId() && startTimeOf(record.pid) === record.startTime;
}

/** @type {(path: string) => ServerRecord | undefined} */
function readRecord(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}
