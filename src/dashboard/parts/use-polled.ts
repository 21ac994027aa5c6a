/** Reads something again and again while a person can see it. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export type Polled<Value> = {
  value: Value | undefined;
  error: unknown;
  /** Reads at once; resolves when the value is there. */
  refresh: () => Promise<void>;
};

/**
 * Calls `read` at once, then every `everyMs` while the tab is visible, one call at a time. Another `key` starts from nothing.
 * A failed read keeps the last value, and its error is shown until a read succeeds.
 */
export function usePolled<Value>(
  read: (signal: AbortSignal) => Promise<Value>,
  { everyMs, key = "" }: { everyMs?: number; key?: string },
): Polled<Value> {
  const [state, setState] = useState<{ value?: Value; error?: unknown; key: string }>({ key });
  const latest = useRef(read);
  latest.current = read;
  const readNow = useRef<() => Promise<void>>(async () => {});
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let running: Promise<void> | undefined;
    const once = async () => {
      try {
        const value = await latest.current(ended.signal);
        if (!ended.signal.aborted) setState({ value, key });
      } catch (error) {
        if (!ended.signal.aborted)
          setState((last) => ({ ...(last.key === key ? last : { key }), error }));
      }
    };
    const next = (): Promise<void> => {
      clearTimeout(timer);
      running ??= once().finally(() => {
        running = undefined;
        const isWanted = everyMs !== undefined && !ended.signal.aborted && !document.hidden;
        if (isWanted) timer = setTimeout(next, everyMs);
      });
      return running;
    };
    const wake = () => {
      if (!document.hidden) void next();
    };
    readNow.current = async () => {
      // A read that began before the change may not show it.
      await running;
      await next();
    };
    void next();
    document.addEventListener("visibilitychange", wake);
    return () => {
      ended.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", wake);
    };
  }, [key, everyMs]);
  const refresh = useCallback(() => readNow.current(), []);
  const current = state.key === key ? state : undefined;
  return { value: current?.value, error: current?.error, refresh };
}

/** The time, read again every `everyMs`. */
export function useNow(everyMs = 1000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
