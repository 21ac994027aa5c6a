/**
 * Owns an agent's start and end in a room of the embedded engine, as first process of its namespaces.
 * Does not own the room (container/engine/room); only the order: listen while still in the machine's network.
 */
import { enterRoom } from "../../engine/room/enter.ts";
import { readRoomBoot } from "../boot.ts";
import { drawIncarnation } from "../incarnation.ts";
import { MetadataCopy, metadataFolder } from "../metadata-copy.ts";
import { PipeReader } from "../pipe.ts";
import { logsFolder } from "../place.ts";
import { Sandbox } from "../sandbox.ts";
import { listen } from "../server.ts";
import { CgroupForest } from "../tree/cgroup.ts";
import { TendedForest } from "../tree/keeper.ts";
import { Reaper } from "../tree/reaper.ts";
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
