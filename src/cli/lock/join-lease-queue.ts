/**
 * Waits in the queue of the commands that share a lease on this machine (lease-queue.ts). If nobody serves the queue
 * any more, the lease has ended too, and calls report that.
 */
import { connect } from "node:net";
import { BerthError } from "../../protocol/errors.ts";
import type { LeasedWork, QueueMessage, QueueUpdate } from "./lease-queue.ts";

type QueueOptions = {
  name: string;
  onQueued: (position: number, holder: string) => void;
  signal: AbortSignal;
  waitMs: number;
};

export type SharedLeaseTurn = {
  /** Registers work that is ended if this process dies. */
  registerWork(work: LeasedWork): void;
  end(): void;
};

/** Nobody orders the commands. */
export const unservedTurn: SharedLeaseTurn = { registerWork: () => {}, end: () => {} };

export function joinLeaseQueue(
  path: string,
  { name, onQueued, signal, waitMs }: QueueOptions,
): Promise<SharedLeaseTurn> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let timer: NodeJS.Timeout | undefined;
    let buffered = "";
    const send = (message: QueueMessage) => socket.write(`${JSON.stringify(message)}\n`);
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    };
    const fail = (reason: unknown) => {
      settle();
      socket.destroy();
      reject(reason);
    };
    const abort = () => fail(signal.reason);
    const handleUpdate = (update: QueueUpdate) => {
      if ("go" in update) {
        settle();
        // The socket must not keep the process alive.
        socket.unref();
        return resolve({
          registerWork: (work) => send({ work }),
          end: () => {
            send({ over: true });
            socket.end();
          },
        });
      }
      timer ??= setTimeout(() => fail(queueTimeout(update.holder)), waitMs);
      onQueued(update.position, update.holder);
    };
    socket.setEncoding("utf8").on("data", (more: string) => {
      const lines = (buffered + more).split("\n");
      buffered = lines.pop() ?? "";
      for (const line of lines) handleUpdate(JSON.parse(line) as QueueUpdate);
    });
    // `close` follows.
    socket.on("error", () => {});
    socket.once("close", () => {
      settle();
      resolve(unservedTurn);
    });
    signal.addEventListener("abort", abort);
    if (signal.aborted) return abort();
    send({ name });
  });
}

function queueTimeout(holder: string): BerthError {
  return new BerthError(
    "lease_wait_timeout",
    "Other commands that share the lease did not finish in time.",
    { facts: { holder } },
  );
}
