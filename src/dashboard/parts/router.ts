/** The address: a path and a query behind `#`, so that the server needs no route for a page. */
import { useEffect, useState } from "preact/hooks";

export type Address = { parts: string[]; query: URLSearchParams };

export function readAddress(hash: string = location.hash): Address {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter((part) => part !== "");
  return { parts: parts.map(decode), query: new URLSearchParams(search) };
}

export function addressOf(parts: string[], query?: URLSearchParams): string {
  const search = query === undefined || query.size === 0 ? "" : `?${query}`;
  return `#/${parts.map(encodeURIComponent).join("/")}${search}`;
}

export function useAddress(): Address {
  const [address, setAddress] = useState(() => readAddress());
  useEffect(() => {
    const read = () => setAddress(readAddress());
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return address;
}

/** Replaces the address without a new entry in the history, for filters that change with each key. */
export function replaceAddress(parts: string[], query: URLSearchParams): void {
  history.replaceState(null, "", addressOf(parts, query));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
