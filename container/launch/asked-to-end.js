/**
 * Owns the ways in which the launcher is told to end: signals, and the loss of the npm that started it.
 */

const parentLookMs = 500;

/** @returns {Promise<"asked">} */
export function askedToEnd() {
  return new Promise((resolve) => {
    // npm passes on what the terminal has sent already: once is enough, and the end has its own limits.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
      process.on(signal, () => resolve("asked"));
    // npm that is killed, or loses its terminal, passes nothing on: then we have another parent.
    const parent = process.ppid;
    const look = () => process.ppid !== parent && resolve("asked");
    if (process.env.npm_lifecycle_event) setInterval(look, parentLookMs).unref();
  });
}
