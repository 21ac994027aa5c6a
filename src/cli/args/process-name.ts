/**
 * Checks the name or id of a process before anything is sent.
 */
import { handleMessage, handlePattern, isGenerated } from "../../protocol/fields/handle.ts";
import { Failure } from "../failure.ts";

export function checkProcessName(name: string): string {
  if (handlePattern.test(name)) return name;
  throw new Failure(`'${name}' is not a valid name of a process: it ${handleMessage}.`, {
    hint: "For example: web, db-1, Worker_2.",
    code: "bad_usage",
  });
}

/** A new name must not look like an id. */
export function checkNewName(name: string): string {
  if (!isGenerated(checkProcessName(name))) return name;
  throw new Failure(`'${name}' is not a valid name of a process: it looks like an id.`, {
    hint: "For example: web, db-1, Worker_2.",
    code: "bad_usage",
  });
}
