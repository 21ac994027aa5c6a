/**
 * Owns the three modes of the one program: an agent on the platform, an agent in a room, a tender of one command.
 * Does not own what any of them does after its start.
 */

import { hideFromOthers } from "./libc.ts";
import { serveRoom } from "./modes/room.ts";
import { serve } from "./modes/serve.ts";
import { tend } from "./tree/tender.ts";

// Before a secret is read.
hideFromOthers();
process.chdir("/");

const [mode] = process.argv.slice(2);
switch (mode) {
  case "serve":
    await serve();
    break;
  case "room":
    serveRoom();
    break;
  case "tend":
    await tend();
    process.exit(0);
    break;
  default:
    console.error("usage: berth-agent serve|room, with the boot document on descriptor 3");
    process.exit(2);
}
