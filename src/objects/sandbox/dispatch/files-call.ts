/**
 * Owns how the door names to the object what is asked of files: checked, in normal form.
 * Does not own their bytes: those travel beside a header (protocol/transfer-call.ts).
 */
import type { MkdirCall, MoveCall } from "../../../protocol/file.ts";
import type { CloneCall } from "../../../protocol/git.ts";
import type { Query } from "./work-call.ts";

/** Not gated, and never a reason to start a container. */
export type FileLook = { look: "stat" | "list" | "watch"; query: Query };

/** Gated by the lease. */
export type FileWork =
  | { do: "remove"; query: Query }
  | { do: "mkdir"; call: MkdirCall }
  | { do: "move"; call: MoveCall }
  | { do: "clone"; call: CloneCall };
