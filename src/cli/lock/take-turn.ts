/**
 * Owns waiting for one's turn among the commands that share a lease on this machine.
 * Does not own whose turn it is (turns.ts). Where nobody serves turns any more the lease has ended too: calls say so.
 */
import { connect } from "node:net";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { TurnNews, TurnWord, TurnWork } from "./turns.ts";

export type TurnOptions = {
  name: string;
  onQueued: (position: number, holder: string) => void;
  signal?: AbortSignal | undefined;
  waitMs?: number | undefined;
};

export type Turn = {
  /** It is ended for us where we die. */
  runs(work: TurnWork): void;
  end(): void;
};

const nobodys: Turn = { runs: () => {}, end: () => {} };

export function takeTurn(
  path: string,
  { name, onQueued, signal, waitMs = limits.leaseQueueMaxMs }: TurnOptions,
): Promise<Turn> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let timer: NodeJS.Timeout | undefined;
    let said = "";
    const say = (word: TurnWord) => socket.write(`${JSON.stringify(word)}\n`);
    const settle = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
    };
    const leave = (why: unknown) => {
      settle();
      socket.destroy();
      reject(why);
    };
    const giveUp = () => leave(signal?.reason);
    const hear = (news: TurnNews) => {
      if ("go" in news) {
        settle();
        // It is nothing that the process would have to stay for.
        socket.unref();
        return resolve({
          runs: (work) => say({ work }),
          end: () => {
            say({ over: true });
            socket.end();
          },
        });
      }
      timer ??= setTimeout(() => leave(tooLong(news.holder)), waitMs);
      onQueued(news.position, news.holder);
    };
    socket.setEncoding("utf8").on("data", (more: string) => {
      const lines = (said + more).split("\n");
      said = lines.pop() ?? "";
      for (const line of lines) hear(JSON.parse(line) as TurnNews);
    });
    // Its close follows.
    socket.on("error", () => {});
    socket.once("close", () => {
      settle();
      resolve(nobodys);
    });
    signal?.addEventListener("abort", giveUp);
    if (signal?.aborted) return giveUp();
    say({ name });
  });
}

function tooLong(holder: string): BerthError {
  return new BerthError("lease_wait_timeout", "Others who share the lease were not done in time.", {
    facts: { holder },
  });
}
