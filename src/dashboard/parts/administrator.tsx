/**
 * The administrator's key, for what belongs to no tenant. No session has its rights: the key is asked for, kept in the memory of
 * this page only, and forgotten with a reload, a sign-out or by a press.
 */
import { useEffect, useState } from "preact/hooks";
import { Berth } from "../../client/index.ts";
import { ErrorNote } from "./error-note.tsx";

let known: Berth | undefined;
const listeners = new Set<() => void>();

export function forgetAdministrator(): void {
  set(undefined);
}

function set(administrator: Berth | undefined): void {
  known = administrator;
  for (const listener of listeners) listener();
}

/** Undefined until somebody has given the key. */
export function useAdministrator(): Berth | undefined {
  const [, redraw] = useState(0);
  useEffect(() => {
    const listener = () => redraw((count) => count + 1);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, []);
  return known;
}

export function AdministratorForm({ why }: { why: string }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>();
  const administrator = useAdministrator();
  if (administrator !== undefined) {
    return (
      <p class="row">
        <span class="quiet grow">This page acts with the administrator's key.</span>
        <button type="button" class="small" onClick={forgetAdministrator}>
          Forget it
        </button>
      </p>
    );
  }
  const give = async (event: Event) => {
    event.preventDefault();
    try {
      const berth = Berth.connect({ url: location.origin, key: key.trim() });
      await berth.keys.list();
      setKey("");
      set(berth);
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <form class="form" onSubmit={give}>
      <p>{why}</p>
      <div class="row">
        <input
          class="grow"
          type="password"
          autocomplete="off"
          aria-label="The administrator's key"
          placeholder="The administrator's key"
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        <button type="submit" class="primary" disabled={key.trim() === ""}>
          Use it
        </button>
      </div>
      <p class="quiet">
        It stays in the memory of this page until it is reloaded. On one machine it is in the file{" "}
        <code>admin-key</code> of the data folder.
      </p>
      <ErrorNote error={error} what="Using the key" />
    </form>
  );
}
