/** Who is signed in, for the parts that offer only what the session may do. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "../api.ts";

export const SessionContext = createContext<Session | undefined>(undefined);

export function useRights(): (right: string) => boolean {
  const session = useContext(SessionContext);
  return (right) => session?.rights.includes(right) === true;
}
