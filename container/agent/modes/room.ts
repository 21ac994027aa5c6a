/**
 * Owns an agent's start and end in a room of the embedded engine, as first process of its namespaces.
 * Does not own the room (container/engine/room); only the order: listen while still in the machine's network.
 */
import { enterRoom } from "../../engine/jail/enter.ts";
import { logsFolder } from "../exec/sandbox-env.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { MetadataCopy, metadataFolder } from "../metadata-copy.ts";
import { Sandbox } from "../sandbox.ts";
import { readRoomBoot } from "../server/boot.ts";
import { drawIncarnation } from "../server/incarnation.ts";
import { listen } from "../server/server.ts";
import { CgroupForest } from "../supervision/cgroup.ts";
import { Reaper } from "../supervision/reaper.ts";
import { TendedForest } from "../supervision/subreaper-client.ts";
import { sayReady } from "./ready.ts";

const engineFd = 0;

export function serveRoom(): void {
  const { boot, room: plan } = readRoomBoot();
  const room = enterRoom(plan);
  const incarnation = drawIncarnation(boot.startId);
  let sandbox: Sandbox | undefined;
  const server = listen(
    {
      hostname: "127.0.0.1",
      port: 0,
      secret: boot.secret,
      incarnation,
      sharesLoopback: plan.network === "host",
    },
    () => {
      if (sandbox === undefined) throw new Error("asked before it was ready");
      return sandbox;
    },
  );
  room.takeOwnNetwork();
  room.dropPrivileges();
  const forest =
    room.cgroup === undefined
      ? new TendedForest(new Reaper("end"))
      : new CgroupForest(room.cgroup, new Reaper("collect"));
  const place = { ...room, env: boot.env, logs: logsFolder };
  sandbox = new Sandbox(place, forest, new MetadataCopy(metadataFolder));
  // The first process of its namespace takes everything in it along.
  const engine = new PipeReader(engineFd, () => {});
  engine.ended.finally(() => process.exit(0));
  sayReady(server, incarnation, forest);
}
