/**
 * Owns the check of a process's name, or id, before anything is made or asked for.
 */
import { handlePattern, handleWords, isMinted } from "../../protocol/fields/handle.ts";
import { Failure } from "../failure.ts";

export function checkProcessName(name: string): string {
  if (handlePattern.test(name)) return name;
  throw new Failure(`'${name}' cannot be the name of a process: it ${handleWords}`, {
    hint: "For example: web, db-1, Worker_2.",
    code: "bad_usage",
  });
}

/** Of one to be given: what looks like an id is taken for one. */
export function checkNewName(name: string): string {
  if (!isMinted(checkProcessName(name))) return name;
  throw new Failure(`'${name}' cannot be the name of a process: it has the form of an id`, {
    hint: "For example: web, db-1, Worker_2.",
    code: "bad_usage",
  });
}
