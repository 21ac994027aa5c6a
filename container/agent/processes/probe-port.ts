/**
 * Probes whether a server in the sandbox accepts connections on a port and keeps one open for a moment.
 */

/** A proxy without a backend accepts a connection and drops it at once. */
const staysOpenMs = 100;
const connectMs = 1000;

/** `stop` ends the probe early, with false. */
export function isListening(port: number, stop: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    let socket: Bun.Socket | undefined;
    let timer = setTimeout(() => done(false), connectMs);
    const onStop = () => done(false);
    stop.addEventListener("abort", onStop);
    const done = (isOpen: boolean) => {
      clearTimeout(timer);
      stop.removeEventListener("abort", onStop);
      resolve(isOpen);
      // Closed in order, because a server may log a reset as an error.
      socket?.end();
    };
    Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        open(opened) {
          socket = opened;
          clearTimeout(timer);
          timer = setTimeout(() => done(true), staysOpenMs);
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
