/**
 * Owns the look whether a server in the sandbox takes connections on a port.
 * Does not own what it speaks: a connection that stays open for a moment is enough.
 */

/** A proxy in front of nothing takes a connection and drops it at once. */
const staysMs = 100;
const connectMs = 1000;

export function answers(port: number, over: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    let socket: Bun.Socket | undefined;
    let timer = setTimeout(() => done(false), connectMs);
    const onOver = () => done(false);
    over.addEventListener("abort", onOver);
    const done = (isOpen: boolean) => {
      clearTimeout(timer);
      over.removeEventListener("abort", onOver);
      resolve(isOpen);
      // Not cut off: a server may take that for a fault.
      socket?.end();
    };
    Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        open(opened) {
          socket = opened;
          clearTimeout(timer);
          timer = setTimeout(() => done(true), staysMs);
        },
        data() {},
        end: () => done(false),
        close: () => done(false),
        error: () => done(false),
        connectError: () => done(false),
      },
    }).catch(() => done(false));
  });
}
