/** Starts the dashboard: signs in by the ticket of a printed link, and draws the page of the address. */
import { render } from "preact";
import { readSession, type Session, signIn } from "./api.ts";
import { App } from "./app.tsx";
import { SignIn } from "./pages/sign-in.tsx";

const root = document.getElementById("app") as HTMLElement;

async function start(): Promise<void> {
  const ticket = /^#ticket=([\w-]+)$/.exec(location.hash)?.[1];
  // The ticket is used up: it stays neither in the address nor in the history.
  if (ticket !== undefined) history.replaceState(null, "", "#/");
  try {
    const session = ticket === undefined ? await readSession() : await signIn({ ticket });
    show(session);
  } catch (error) {
    show(undefined, error);
  }
}

function show(session: Session | undefined, error?: unknown): void {
  if (session === undefined) render(<SignIn error={error} onSignedIn={show} />, root);
  else render(<App session={session} onSignedOut={() => show(undefined)} />, root);
}

void start();
