/**
 * Owns the modes of the one program: an agent on the platform, an agent in a room, a tender of one command, a drawer of
 * screens.
 * Does not own what any of them does after its start. Each loads its own part only: a tender starts often.
 */
import { hideFromOthers } from "./kernel/libc.ts";

// Before a secret is read.
hideFromOthers();
process.chdir("/");

switch (process.argv[2]) {
  case "serve":
    await (await import("./modes/serve.ts")).serve();
    break;
  case "room":
    (await import("./modes/room.ts")).serveRoom();
    break;
  case "tend":
    await (await import("./supervision/subreaper.ts")).tend();
    process.exit(0);
    break;
  case "draw":
    await (await import("./terminals/screen/render-worker.ts")).draw();
    process.exit(0);
    break;
  default:
    console.error("usage: berth-agent serve|room, with the boot document on descriptor 3");
    process.exit(2);
}
