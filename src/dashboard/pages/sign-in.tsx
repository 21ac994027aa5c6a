/** Asks for a key where no ticket came with the address. */
import { useState } from "preact/hooks";
import { type Session, signIn } from "../api.ts";
import { ErrorNote } from "../parts/error-note.tsx";

type SignInProps = { error?: unknown; onSignedIn: (session: Session) => void };

export function SignIn({ error: given, onSignedIn }: SignInProps) {
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>(given);
  const [isBusy, setBusy] = useState(false);
  const send = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      onSignedIn(await signIn({ key: key.trim() }));
    } catch (thrown) {
      setError(thrown);
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <form class="card" onSubmit={send}>
        <h1>Berth</h1>
        <p class="quiet">
          Open a link that signs you in with <code>berth dashboard</code>, or paste a key.
        </p>
        <label>
          Key
          <input
            type="password"
            autocomplete="off"
            required
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <p class="row end">
          <button type="submit" class="primary" disabled={isBusy || key.trim() === ""}>
            Sign in
          </button>
        </p>
        <ErrorNote error={error} what="Signing in" />
      </form>
    </main>
  );
}
