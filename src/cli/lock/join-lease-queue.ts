/** Waits in the queue of the commands that share a lease. If nobody serves it any more, the lease has ended too. */
import { connect } from "node:net";
import { BerthError } from "../../protocol/error-codes.ts";
import {
  type LeasedWork,
  type QueueMessage,
  type QueueUpdate,
  readMessages,
} from "./lease-queue.ts";

type QueueOptions = {
  name: string;
  onQueued: (position: number, holder: string) => void;
  signal: AbortSignal;
  waitMs: number;
};

type SharedLeaseTurn = {
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
    readMessages<QueueUpdate>(socket, handleUpdate);
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
