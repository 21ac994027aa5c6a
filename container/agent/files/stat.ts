/**
 * Owns what is told of one file, folder or link: of a link itself, and what it says.
 */
import type { FileView } from "../../../src/protocol/file.ts";
import { close, nowhere, open, statusAt, targetAt } from "../kernel/openat.ts";
import { openPlace, placeOf, type Target } from "./paths.ts";
import { refusing } from "./refusal.ts";
import { viewOf } from "./view.ts";

/** With the rights of the calling thread. */
export function stat({ raw, shown }: Target): FileView {
  return refusing(shown, () => {
    const fd = openPlace(nowhere, raw, open.noFollow);
    try {
      const status = statusAt(fd);
      const path = shown.split("/").includes("..") ? placeOf(fd) : shown;
      return viewOf(path, status, status.kind === "link" ? targetAt(fd) : undefined);
    } finally {
      close(fd);
    }
  });
}
